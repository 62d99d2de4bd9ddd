// One place of the answer at a time.
const places = document.getElementById("places");
if (places) {
  const show = () => document.querySelectorAll(".place").forEach((place, at) => (place.hidden = String(at) !== places.elements.place.value));
  places.hidden = false;
  places.addEventListener("change", show);
  show();
}
const wide = matchMedia("(min-width: 60rem)").matches;
document.querySelectorAll("nav details, #chart[open]").forEach((part) => (part.open = wide));

// Each chart is one stop of the tabulator; arrows lead from dot to dot.
document.querySelectorAll(".chart figure").forEach((chart) => {
  const dots = [...chart.querySelectorAll("a")];
  const stop = (chosen) => dots.forEach((dot) => (dot.tabIndex = dot === chosen ? 0 : -1));
  stop(dots[0]);
  chart.addEventListener("keydown", (event) => {
    const next = dots[dots.indexOf(document.activeElement) + { ArrowDown: 1, ArrowRight: 1, ArrowUp: -1, ArrowLeft: -1 }[event.key]];
    if (!next) return;
    event.preventDefault();
    stop(next);
    next.focus();
  });
});

// Tables that are cut off at the right are marked, whenever they change their size.
const watcher = new ResizeObserver((seen) => {
  for (const { target } of seen) target.toggleAttribute("data-cut", target.scrollWidth > target.clientWidth + 1);
});
document.querySelectorAll(".scroll").forEach((part) => watcher.observe(part));

// Tables to explore: DataTables draws, sorts and pages their rows; the filters above them choose some.
const library = document.getElementById("library");
const { default: DataTable } = library ? await unpacked(JSON.parse(library.textContent)) : {};
const DASH = "–";

// The library lies in the page packed by gzip.
async function unpacked(packed) {
  const bytes = Uint8Array.from(atob(packed), (letter) => letter.charCodeAt(0));
  const text = await new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"))).text();
  return import(`data:text/javascript;charset=utf-8,${encodeURIComponent(text)}`);
}

// As `papers.wording.significant`: plain digits, never an exponent.
function significant(value, digits) {
  if (value === 0) return "0";
  const rounded = Number(value.toPrecision(digits));
  return rounded.toFixed(Math.max(0, digits - 1 - Math.floor(Math.log10(Math.abs(rounded)))));
}

const percent = (share, digits) => `${significant(100 * share, digits)} %`;

// How a value of each kind is shown, and by which number rows are sorted.
const KINDS = {
  count: { show: String },
  number: { show: (value) => significant(value, 3) },
  share: { show: (value) => percent(value, 2) },
  mebibytes: { show: (value) => String(Math.round(value / 2 ** 20)) },
  interval: {
    show: ([low, high, half]) => `${significant(low, 3)} – ${significant(high, 3)} <small>±${percent(half, 2)}</small>`,
    plain: ([low, high]) => `${low} ${high}`,
    order: ([, , half]) => half,
  },
};

function column({ title, kind }) {
  if (kind === "text" || kind === "words") return { title, className: kind, render: DataTable.render.text() };
  const { show, plain = (value) => value, order = (value) => value } = KINDS[kind];
  const render = (value, type) => {
    // Cells without a number come last when the smallest comes first.
    if (value === null) return type === "sort" || type === "type" ? Infinity : type === "export" ? "" : DASH;
    if (type === "sort" || type === "type") return order(value);
    return type === "export" ? plain(value) : show(value);
  };
  return { title, type: "num", className: "number", render };
}

function explore(part) {
  const name = part.dataset.name;
  const { columns, rows } = JSON.parse(part.querySelector("script").textContent);
  const table = new DataTable(`#${name}-table`, {
    data: rows,
    columns: columns.map(column),
    order: [],
    deferRender: true,
    autoWidth: false,
    pageLength: 25,
    lengthMenu: [10, 25, 100, { label: "all", value: -1 }],
    layout: {
      topStart: "search",
      topEnd: {
        buttons: [{ extend: "csvHtml5", text: "Save these rows as CSV", filename: name, exportOptions: { orthogonal: "export" } }],
      },
      bottomStart: ["info", "pageLength"],
      bottomEnd: "paging",
    },
    language: {
      search: "Find in all columns:",
      info: "Rows _START_ to _END_ of _TOTAL_",
      infoEmpty: "No rows",
      infoFiltered: "(of _MAX_ in all)",
      lengthMenu: "_MENU_ rows a page",
      zeroRecords: "No row has all of these values.",
    },
  });
  watcher.observe(part.querySelector(".dt-layout-table"));
  for (const heading of part.querySelectorAll("thead th")) heading.scope = "col";

  const form = part.querySelector("form");
  const choices = [...form.querySelectorAll("select")];
  const choose = () => {
    for (const choice of choices) {
      const place = Number(choice.dataset.column);
      const wanted = choice.value;
      table.column(place).search.fixed("chosen", wanted === "" ? null : (_, row) => String(row[place]) === wanted);
    }
    table.draw();
  };
  form.addEventListener("change", choose);
  // A form's fields have their first values again only after this event.
  form.addEventListener("reset", () => setTimeout(choose));
}

document.querySelectorAll(".explorer").forEach(explore);
