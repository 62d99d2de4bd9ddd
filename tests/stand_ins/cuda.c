/* A stand-in for the few calls of CUDA's run time and cuBLAS that machine.gpu_peak makes. It computes nothing: a product of
 * float32 takes the time of 10 TFLOP/s, of TF32 80, a copy that of 500 GB/s within the GPU, 20 to and 10 from pinned memory,
 * and half of it for other memory. bfloat16 it does not know. STANDIN_CUDA names a code with which the first call fails.
 * Of STANDIN_GPUS, 1 where it is not set, the first reaches those of odd numbers directly at 50 GB/s, and others at 6.
 */
#include <stdlib.h>

static double now, begun, ended;
static void *pinned;

int cudaGetDeviceCount(int *count) { const char *code = getenv("STANDIN_CUDA"); const char *gpus = getenv("STANDIN_GPUS"); *count = gpus ? atoi(gpus) : 1; return code ? atoi(code) : 0; }
static int current, reached[8];
int cudaSetDevice(int device) { current = device; return 0; }
int cudaDeviceCanAccessPeer(int *able, int here, int there) { *able = !here && there % 2; return 0; }
int cudaDeviceEnablePeerAccess(int there, unsigned flags) { return current || flags ? 101 : reached[there]++ ? 704 : 0; }
int cudaMemcpyPeerAsync(void *target, int there, void *source, int here, size_t size, void *stream) {
    if (current || here || !there) return 1;
    now += size / (reached[there] ? 50e9 : 6e9);
    return 0;
}
int cudaMalloc(void **memory, size_t size) { *memory = malloc(64); return 0; }
int cudaFree(void *memory) { free(memory); return 0; }
int cudaMallocHost(void **memory, size_t size) { pinned = *memory = malloc(64); return 0; }
int cudaFreeHost(void *memory) { free(memory); pinned = NULL; return 0; }
int cudaEventCreate(void **event) { *event = malloc(1); return 0; }
static void *first;
int cudaEventRecord(void *event, void *stream) { if (!first) first = event; *(event == first ? &begun : &ended) = now; return 0; }
int cudaEventSynchronize(void *event) { return 0; }
int cudaEventElapsedTime(float *milliseconds, void *one, void *other) { *milliseconds = 1000 * (ended - begun); return 0; }
int cudaMemcpyAsync(void *target, void *source, size_t size, int direction, void *stream) {
    double rate = direction == 3 ? 500e9 : direction == 1 ? 20e9 : 10e9;
    now += size / (direction == 3 || source == pinned || target == pinned ? rate : rate / 2);
    return 0;
}
int cublasCreate_v2(void **handle) { *handle = malloc(1); return 0; }
int cublasGemmEx(void *handle, int a, int b, int m, int n, int k, const float *alpha, const void *A, int At, int lda,
                 const void *B, int Bt, int ldb, const float *beta, void *C, int Ct, int ldc, int computed, int algorithm) {
    if (At == 14) return 15;
    if (*alpha != 1 || *beta != 0 || m != lda || n != ldb || k != ldc || algorithm != -1) return 13;
    now += 2.0 * m * n * k / (computed == 69 ? 10e12 : 80e12);
    return 0;
}
