-- Torch7's side of the adapter: builds the network from the specification, and trains it when it is told to.
--
--     luajit torch7.lua HOME IN OUT
--
-- HOME is the folder of Torch7's own files; IN and OUT are descriptors of pipes. First comes a line with a table of
-- Lua: the specification's nodes and optimiser, the seed of dropout, the shape and kind of the input, the number of labels and the
-- names of the parameters; then, as raw numbers, the input (float32, or int32 counted from 1 for words), the labels
-- (int32, counted from 1) and the parameters in their order (float32, in Torch7's layout). The answer is a line: number
-- of parameters, threads, the BLAS, its kernel, and LuaJIT's version, with tabs between. Then each line is answered:
--
--     run STEPS       trains so many steps; answers the loss of the last
--     train RATE      is followed by an input and labels, as above; trains a step on them; answers its loss
--     judge 1         is followed by an input; answers the raw scores, with dropout off
--     weights NAME    answers the raw numbers of a parameter
--
-- A failure is answered by a line that begins with "error". The end of IN is the end of this.

local home, reading, writing = arg[1], arg[2], arg[3]
package.path = home .. '/lua/?.lua;' .. home .. '/lua/?/init.lua'
package.cpath = home .. '/lib/?.so'
require 'torch'
require 'nn'
local ffi = require 'ffi'
ffi.cdef 'char *openblas_get_config(void); char *openblas_get_corename(void);'
torch.setdefaulttensortype('torch.FloatTensor')

-- Every step of a sequence at once where that can be: rows are (step, sample), so that a step's rows are one block of
-- memory. nn has no LSTM. The order of the gates is i, f, o, g: one sigmoid for three of them.
local LSTM, Module = torch.class('nn.LSTM', 'nn.Module')

function LSTM:__init(features, units, steps)
  Module.__init(self)
  self.units, self.steps = units, steps
  self.weight, self.recurrent = torch.zeros(features, 4 * units), torch.zeros(units, 4 * units)
  self.bias, self.gradBias = torch.zeros(4 * units), torch.zeros(4 * units)
  self.gates, self.cells, self.squashed, self.errors = torch.Tensor(), torch.Tensor(), torch.Tensor(), torch.Tensor()
end

function LSTM:parameters()
  return {self.weight, self.recurrent, self.bias}, {}
end

-- Memory and the views of each step, which stay the same.
function LSTM:prepare(rows)
  local units, batch = self.units, rows / self.steps
  self.gates:resize(rows, 4 * units):zero()
  self.errors:resize(rows, 4 * units):zero()
  for _, tensor in ipairs {self.output, self.cells, self.squashed} do tensor:resize(rows, units):zero() end
  self.ones = torch.ones(rows)
  self.at = {}
  for step = 1, self.steps do
    local function of(tensor) return tensor:narrow(1, (step - 1) * batch + 1, batch) end
    local function parts(tensor)
      local whole = of(tensor)
      local function gate(number) return whole:narrow(2, (number - 1) * units + 1, units) end
      return {whole = whole, three = whole:narrow(2, 1, 3 * units), i = gate(1), f = gate(2), o = gate(3), g = gate(4)}
    end
    self.at[step] = {gates = parts(self.gates), errors = parts(self.errors), cell = of(self.cells),
                     squashed = of(self.squashed), output = of(self.output)}
  end
  self.cellError, self.hidden, self.product = torch.Tensor(batch, units), torch.zeros(batch, units), torch.Tensor()
end

function LSTM:updateOutput(input)
  if self.gates:nElement() == 0 then self:prepare(input:size(1)) end
  self.gates:addmm(0, self.gates, 1, input, self.weight):addr(1, self.ones, self.bias)
  for step = 1, self.steps do
    local now, before = self.at[step], self.at[step - 1]
    local gates = now.gates
    if before then gates.whole:addmm(1, before.output, self.recurrent) end
    gates.three:sigmoid()
    gates.g:tanh()
    now.cell:cmul(gates.i, gates.g)
    if before then now.cell:addcmul(1, gates.f, before.cell) end
    now.squashed:tanh(now.cell)
    now.output:cmul(gates.o, now.squashed)
  end
  return self.output
end

function LSTM:updateGradInput(input, gradOutput)
  local kernels, batch = self.weight.THNN, input:size(1) / self.steps
  local cellError, product = self.cellError:zero(), self.product
  for step = self.steps, 1, -1 do
    local now, before, after = self.at[step], self.at[step - 1], self.at[step + 1]
    local gates, errors = now.gates, now.errors
    local hidden = gradOutput:narrow(1, (step - 1) * batch + 1, batch)
    if after then
      hidden = self.hidden:copy(hidden):addmm(1, after.errors.whole, self.recurrent:t())
    end
    product:cmul(hidden, gates.o)
    kernels.Tanh_updateGradInput(product:cdata(), product:cdata(), product:cdata(), now.squashed:cdata())
    cellError:add(product)
    errors.i:cmul(cellError, gates.g)
    if before then errors.f:cmul(cellError, before.cell) else errors.f:zero() end
    errors.o:cmul(hidden, now.squashed)
    errors.g:cmul(cellError, gates.i)
    local three, g = errors.three:cdata(), errors.g:cdata()
    kernels.Sigmoid_updateGradInput(three, three, three, gates.three:cdata())
    kernels.Tanh_updateGradInput(g, g, g, gates.g:cdata())
    cellError:cmul(gates.f)
  end
  if self.gradInput then
    self.gradInput:resizeAs(input):addmm(0, self.gradInput, 1, self.errors, self.weight:t())
  end
  return self.gradInput
end

function LSTM:accGradParameters(input, gradOutput, scale)
  local rows = input:size(1)
  local batch = rows / self.steps
  self.weight:addmm(scale, input:t(), self.errors)
  self.gradBias:addmv(scale, self.errors:t(), self.ones)
  if self.steps > 1 then
    local before, after = self.output:narrow(1, 1, rows - batch), self.errors:narrow(1, batch + 1, rows - batch)
    self.recurrent:addmm(scale, before:t(), after)
  end
end

-- What a convolution unfolds its errors into is of no use after it: one for all.
local scratch = torch.Tensor()

-- The module of a node; `over`: it may write over what it is given.
local make = {
  dense = function(node)
    return nn.Linear(node.in_shape[#node.in_shape], node.units, node.bias)
  end,
  conv = function(node)
    local kernel, stride, padding = node.kernel, node.stride, node.padding
    local sizes = {kernel, kernel, stride, stride, padding, padding}
    local module = nn.SpatialConvolution(node.in_shape[1], node.channels, unpack(sizes))
    module.fgradInput = scratch
    return node.bias and module or module:noBias()
  end,
  max_pool = function(node)
    local kernel, stride, padding = node.kernel, node.stride, node.padding
    return nn.SpatialMaxPooling(kernel, kernel, stride, stride, padding, padding)
  end,
  global_average_pool = function(node)
    local channels, height, width = unpack(node.in_shape)
    local pool = nn.SpatialAveragePooling(width, height, 1, 1)
    return nn.Sequential():add(pool):add(nn.View(channels):setNumInputDims(3))
  end,
  flatten = function(node) return nn.View(node.shape[1]):setNumInputDims(#node.in_shape) end,
  batch_norm = function(node, _, epsilon)
    local kind = #node.shape == 1 and nn.BatchNormalization or nn.SpatialBatchNormalization
    return kind(node.shape[1], epsilon, 0.1)
  end,
  relu = function(_, over) return nn.ReLU(over) end,
  dropout = function(node) return nn.Dropout(node.rate) end,
  sigmoid = function() return nn.Sigmoid() end,
  add = function(_, over) return nn.CAddTable(over) end,
  embedding = function(node) return nn.LookupTable(node.vocabulary, node.units) end,
  lstm = function(node) return nn.LSTM(node.in_shape[2], node.units, node.shape[1]) end,
}

-- Where a parameter of the specification lives.
local homes = {
  weight = 'weight', bias = 'bias', gamma = 'weight', beta = 'bias', input = 'weight', recurrent = 'recurrent',
}

-- These look neither at their output nor write over the errors that they are given.
local modest = {dense = true, conv = true, batch_norm = true}

-- Whether the module of a node may write over its first input on the way forth, and over its errors on the way back.
local inPlace = {
  relu = function(_, source, alone) return (modest[source.op] or source.op == 'add') and alone(source) end,
  -- Both inputs get the same errors. So neither may change them, or the other must have seen them right after the sum.
  add = function(node, first, alone, second)
    if not (second and modest[first.op] and alone(first)) or #node.inputs > 2 or first == second then return false end
    return modest[second.op] and alone(second) or first.place == node.place - 1
  end,
}

-- Of these, a gradient is one product, or one sum, that can be added to the parameter at once. What is added sample by
-- sample would be rounded as often, and lost where a sample's part is less than half of the parameter's last place.
local atOnce = {
  gradWeight = {dense = true, batch_norm = true, embedding = true, lstm = true},
  gradBias = {batch_norm = true},
}

local function build(spec)
  local nodes, readers = {}, {}
  for place, node in ipairs(spec.nodes) do
    node.place, nodes[node.name] = place, node
    for _, name in ipairs(node.inputs) do readers[name] = (readers[name] or 0) + 1 end
  end
  local function alone(node) return readers[node.name] == 1 end
  for _, node in ipairs(spec.nodes) do
    local first, second = nodes[node.inputs[1]], nodes[node.inputs[2]]
    local over = first and inPlace[node.op] and inPlace[node.op](node, first, alone, second) or false
    node.module = make[node.op](node, over, spec.epsilon)
    if spec.optimiser.name == 'sgd' then
      -- A gradient that is added to the weights at once, scaled by the learning rate, is its step.
      for gradient, parameter in pairs {gradWeight = 'weight', gradBias = 'bias'} do
        if atOnce[gradient][node.op] then node.module[gradient] = node.module[parameter] end
      end
    end
    -- nn's way to say that nobody needs it.
    if not first and (node.op == 'dense' or node.op == 'conv' or node.op == 'lstm') then node.module.gradInput = nil end
  end
  -- The modules' own places for gradients.
  collectgarbage()
  return nodes
end

-- Parameters of a module whose gradients, times the learning rate, have a place of their own: {parameter, gradient} of each.
local function apart(module)
  local found = {}
  for gradient, parameter in pairs {gradWeight = 'weight', gradBias = 'bias'} do
    local own, to = module[gradient], module[parameter]
    if own and to and own ~= to then table.insert(found, {to, own:zero()}) end
  end
  return found
end

-- What turns gradients into new weights, as the package optim does it, in place; SGD needs none.
local update = {
  adadelta = function(own, weight, gradient, state)
    if not state.squares then
      state.squares, state.steps = weight:clone():zero(), weight:clone():zero()
      state.below, state.step = weight:clone(), weight:clone()
    end
    state.squares:mul(own.rho):addcmul(1 - own.rho, gradient, gradient)
    state.below:copy(state.squares):add(own.epsilon):sqrt()
    state.step:copy(state.steps):add(own.epsilon):sqrt():cdiv(state.below):cmul(gradient)
    weight:add(-own.learning_rate, state.step)
    state.steps:mul(own.rho):addcmul(1 - own.rho, state.step, state.step)
  end,
  rmsprop = function(own, weight, gradient, state)
    if not state.squares then state.squares, state.below = weight:clone():zero(), weight:clone() end
    state.squares:mul(own.rho):addcmul(1 - own.rho, gradient, gradient)
    state.below:sqrt(state.squares):add(own.epsilon)
    weight:addcdiv(-own.learning_rate, gradient, state.below)
  end,
}

local function trainer(spec, input, labels)
  local criterion, nodes, own = nn.CrossEntropyCriterion(), spec.nodes, spec.optimiser
  local rule, states = update[own.name], {}
  local outputs, errors, given = {input = input}, {}, {}

  local function sources(node)
    if #node.inputs == 1 then return outputs[node.inputs[1]] end
    local found = {}
    for number, name in ipairs(node.inputs) do found[number] = outputs[name] end
    return found
  end

  local function pass(name, gradient)
    if name == 'input' then return end
    errors[name] = errors[name] and errors[name]:add(gradient) or gradient
  end

  local function forward()
    for place, node in ipairs(nodes) do
      given[place] = sources(node)
      outputs[node.name] = node.module:forward(given[place])
    end
    return outputs[nodes[#nodes].name]
  end

  local function drop(yes)
    for _, node in ipairs(nodes) do
      if node.op == 'dropout' then node.module.train = yes end
    end
  end

  local function descend()
    for place, node in ipairs(nodes) do
      local weights, gradients = node.module:parameters()
      for number, weight in ipairs(weights or {}) do
        local key = place .. '/' .. number
        states[key] = states[key] or {}
        rule(own, weight, gradients[number], states[key])
      end
      node.module:zeroGradParameters()
    end
  end

  local function judge()
    drop(false)
    local scores = forward()
    drop(true)
    return scores
  end

  local function step()
    forward()
    local last = nodes[#nodes].name
    local loss = criterion:forward(outputs[last], labels)
    errors = {[last] = criterion:backward(outputs[last], labels)}
    for place = #nodes, 1, -1 do
      local node = nodes[place]
      local gradient = node.module:backward(given[place], errors[node.name], rule and 1 or -own.learning_rate)
      for _, pair in ipairs(node.apart) do
        pair[1]:add(pair[2])
        pair[2]:zero()
      end
      if #node.inputs == 1 then
        pass(node.inputs[1], gradient)
      else
        for number, name in ipairs(node.inputs) do pass(name, gradient[number]) end
      end
    end
    if rule then descend() end
    return loss
  end

  for _, node in ipairs(nodes) do
    node.apart = rule and {} or apart(node.module)
    if rule then node.module:zeroGradParameters() end
  end
  return step, judge
end

local function main(commands, answers)
  local function answer(line)
    answers:writeString(line .. '\n')
    answers:synchronize()
  end

  local spec = assert(loadstring('return ' .. commands:readString('*l')))()
  torch.setnumthreads(spec.threads)
  torch.manualSeed(spec.seed)
  local nodes = build(spec)
  local input = torch[spec.words and 'IntTensor' or 'FloatTensor'](torch.LongStorage(spec.shape))
  commands[spec.words and 'readInt' or 'readFloat'](commands, input:storage())
  local labels = torch.IntTensor(spec.labels)
  commands:readInt(labels:storage())
  local found, count = {}, 0
  for _, name in ipairs(spec.parameters) do
    local layer, role = name:match('^(.*)/(.*)$')
    found[name] = nodes[layer].module[homes[role]]
    commands:readFloat(found[name]:storage())
  end
  for _, node in ipairs(spec.nodes) do
    for _, tensor in ipairs(node.module:parameters() or {}) do count = count + tensor:nElement() end
  end
  local truth = labels:long()
  local step, judge = trainer(spec, spec.words and input:long() or input, truth)
  local blas = ffi.load('libopenblas.so.0')
  local facts = {count, torch.getnumthreads(), ffi.string(blas.openblas_get_config()),
                 ffi.string(blas.openblas_get_corename()), jit.version}
  answer(table.concat(facts, '\t'))

  commands:quiet()
  while true do
    local line = commands:readString('*l')
    if commands:hasError() then return end
    local command, value = line:match('^(%S+) (.*)$')
    if command == 'run' then
      local loss
      for _ = 1, tonumber(value) do loss = step() end
      answer(string.format('%.9g', loss))
    elseif command == 'train' then
      spec.optimiser.learning_rate = tonumber(value)
      commands:readFloat(input:storage())
      commands:readInt(labels:storage())
      truth:copy(labels)
      answer(string.format('%.9g', step()))
    elseif command == 'judge' then
      commands:readFloat(input:storage())
      answers:writeFloat(judge():contiguous():storage())
      answers:synchronize()
    else
      answers:writeFloat(found[value]:storage())
      answers:synchronize()
    end
  end
end

local commands = torch.DiskFile('/dev/fd/' .. reading, 'r'):binary()
local answers = torch.DiskFile('/dev/fd/' .. writing, 'w'):binary()
local done, message = xpcall(function() main(commands, answers) end, debug.traceback)
if not done then
  print(message)
  answers:writeString('error ' .. message:gsub('%s+', ' ') .. '\n')
  answers:synchronize()
end
