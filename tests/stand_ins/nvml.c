/* A stand-in for NVIDIA's NVML: GPUs as the variable STANDIN_GPUS describes them, such as "GeForce GTX 980 old;A100 mig".
 * The words behind a model's name: `old`, its driver lacks what came with 510 and later, and it has no counter of energy;
 * `busy`, process 4242 computes on it; `late`, the memory of what ended just now is still being given back; `capped`, it
 * is at its power limit; `mig`, it is divided into two instances; `bare`, it answers nothing but what it is.
 */
#include <stdlib.h>
#include <string.h>
#include <stdio.h>

enum { OK = 0, INVALID = 2, NOT_SUPPORTED = 3, NOT_FOUND = 6, TOO_SMALL = 7, FUNCTION_NOT_FOUND = 13 };
typedef struct gpu {
    char model[64], words[64];
    int number, part, looks, energies;
} gpu;
typedef struct { unsigned long long total, free, used; } memory;
typedef struct { unsigned int gpu, memory; } utilization;
typedef struct { unsigned int pid; unsigned long long used; unsigned int instance, part; } process;

static gpu known[8], parts[8][2];
static unsigned int count;

static int is(gpu *one, const char *word) { return strstr(one->words, word) != NULL; }

int nvmlInitWithFlags(unsigned int flags) {
    char text[512], *rest = text, *entry;
    const char *given = getenv("STANDIN_GPUS");
    static int ready;
    if (!given) return 9; /* no driver */
    if (ready++) return OK;
    snprintf(text, sizeof text, "%s", given);
    while ((entry = strsep(&rest, ";")) && *entry && count < 8) {
        gpu *one = &known[count];
        const char *all[] = {" old", " busy", " late", " capped", " mig", " bare"};
        for (unsigned int at = 0; at < sizeof all / sizeof *all; at++) {
            char *found = strstr(entry, all[at]);
            if (found) { strcat(one->words, all[at]); memmove(found, found + strlen(all[at]), strlen(found + strlen(all[at])) + 1); }
        }
        snprintf(one->model, sizeof one->model, "%s", entry);
        one->number = count;
        one->part = -1;
        for (int part = 0; part < 2; part++) {
            parts[count][part] = *one;
            parts[count][part].part = part;
            snprintf(parts[count][part].model, 64, "%s MIG 1g.5gb", entry);
        }
        count++;
    }
    return OK;
}
int nvmlShutdown(void) { return OK; }
int nvmlSystemGetDriverVersion(char *text, unsigned int size) { snprintf(text, size, "580.00"); return OK; }
int nvmlSystemGetCudaDriverVersion(int *version) { *version = 13010; return OK; }
int nvmlDeviceGetCount_v2(unsigned int *found) { *found = count; return OK; }
int nvmlDeviceGetHandleByIndex_v2(unsigned int index, gpu **found) {
    if (index >= count) return INVALID;
    *found = &known[index];
    return OK;
}
static void name(gpu *one, char *text, unsigned int size) {
    if (one->part < 0) snprintf(text, size, "GPU-%d000", one->number);
    else snprintf(text, size, "MIG-%d00%d", one->number, one->part);
}
int nvmlDeviceGetHandleByUUID(const char *wanted, gpu **found) {
    char text[32];
    for (unsigned int at = 0; at < count; at++)
        for (int part = -1; part < 2; part++) {
            *found = part < 0 ? &known[at] : &parts[at][part];
            name(*found, text, sizeof text);
            if (!strcmp(text, wanted)) return OK;
        }
    return NOT_FOUND;
}
int nvmlDeviceGetName(gpu *one, char *text, unsigned int size) { snprintf(text, size, "NVIDIA %s", one->model); return OK; }
int nvmlDeviceGetUUID(gpu *one, char *text, unsigned int size) { name(one, text, size); return OK; }
int nvmlDeviceGetMemoryInfo(gpu *one, memory *found) {
    unsigned long long mib = 1 << 20, late = is(one, " late") && one->looks < 3 ? 500 * (3 - one->looks) : 0;
    found->total = 8192 * mib;
    found->used = (100 + late + (one->looks > 6 ? 1000 : 0)) * mib;
    found->free = found->total - found->used;
    one->looks++;
    return is(one, " bare") ? NOT_SUPPORTED : OK;
}
int nvmlDeviceGetPersistenceMode(gpu *one, unsigned int *found) { *found = 1; return OK; }
int nvmlDeviceGetComputeMode(gpu *one, unsigned int *found) { *found = 0; return OK; }
int nvmlDeviceGetEnforcedPowerLimit(gpu *one, unsigned int *found) { *found = 180000; return is(one, " bare") ? NOT_SUPPORTED : OK; }
int nvmlDeviceGetCurrPcieLinkGeneration(gpu *one, unsigned int *found) { *found = 3; return OK; }
int nvmlDeviceGetCurrPcieLinkWidth(gpu *one, unsigned int *found) { *found = 16; return OK; }
int nvmlDeviceGetCudaComputeCapability(gpu *one, int *major, int *minor) { *major = 6; *minor = 1; return OK; }
int nvmlDeviceGetMaxClockInfo(gpu *one, unsigned int kind, unsigned int *found) { *found = 1911; return OK; }
int nvmlDeviceGetClockInfo(gpu *one, unsigned int kind, unsigned int *found) { *found = 1700 + 100 * one->number; return is(one, " bare") ? NOT_SUPPORTED : OK; }
int nvmlDeviceGetUtilizationRates(gpu *one, utilization *found) { found->gpu = 40 + 20 * one->number; return is(one, " bare") ? NOT_SUPPORTED : OK; }
int nvmlDeviceGetTotalEnergyConsumption(gpu *one, unsigned long long *found) {
    if (is(one, " old") || is(one, " bare") || one->part >= 0) return NOT_SUPPORTED;
    *found = 5000ull * ++one->energies;
    return OK;
}
int nvmlDeviceGetPowerUsage(gpu *one, unsigned int *found) { *found = 150000; return is(one, " bare") || one->part >= 0 ? NOT_SUPPORTED : OK; }
int nvmlDeviceGetCurrentClocksEventReasons(gpu *one, unsigned long long *found) {
    *found = is(one, " capped") ? 0x4 : 0;
    return is(one, " old") || is(one, " bare") ? FUNCTION_NOT_FOUND : OK;
}
int nvmlDeviceGetCurrentClocksThrottleReasons(gpu *one, unsigned long long *found) {
    *found = is(one, " capped") ? 0x4 : 0;
    return is(one, " bare") ? FUNCTION_NOT_FOUND : OK;
}
int nvmlDeviceGetMigMode(gpu *one, unsigned int *now, unsigned int *pending) {
    *now = *pending = is(one, " mig");
    return is(one, " old") ? NOT_SUPPORTED : OK;
}
int nvmlDeviceGetMaxMigDeviceCount(gpu *one, unsigned int *found) { *found = 7; return OK; }
int nvmlDeviceGetMigDeviceHandleByIndex(gpu *one, unsigned int index, gpu **found) {
    if (index > 1) return NOT_FOUND;
    *found = &parts[one->number][index];
    return OK;
}
static int processes(gpu *one, unsigned int *size, process *found) {
    unsigned int given = *size;
    *size = is(one, " busy");
    if (*size == 0) return OK;
    if (given == 0 || !found) return TOO_SMALL;
    memset(found, 0, sizeof *found);
    found->pid = 4242;
    return OK;
}
int nvmlDeviceGetComputeRunningProcesses_v2(gpu *one, unsigned int *size, process *found) { return processes(one, size, found); }
int nvmlDeviceGetComputeRunningProcesses_v3(gpu *one, unsigned int *size, process *found) {
    return is(one, " old") ? FUNCTION_NOT_FOUND : processes(one, size, found);
}
const char *nvmlErrorString(int code) { return "a stand-in has no answer"; }
