// SPDX-License-Identifier: Apache-2.0
// NVRTC: it compiles without a GPU, so what it makes can be compared byte by byte.
#include "probe.h"

DECLARE(int, nvrtcVersion, int*, int*);
DECLARE(int, nvrtcCreateProgram, void**, const char*, const char*, int, const char* const*, const char* const*);
DECLARE(int, nvrtcCompileProgram, void*, int, const char* const*);
DECLARE(int, nvrtcGetPTXSize, void*, size_t*);
DECLARE(int, nvrtcGetPTX, void*, char*);
DECLARE(int, nvrtcGetProgramLogSize, void*, size_t*);
DECLARE(int, nvrtcDestroyProgram, void**);

static void compile(const char* source) {
    void* program = NULL;
    size_t size = 0;
    SHOW(nvrtcCreateProgram, &program, source, "probe.cu", 0, NULL, NULL);
    SHOW(nvrtcCompileProgram, program, 0, NULL);
    SHOW(nvrtcGetProgramLogSize, program, &size);
    printf("log of %zu bytes\n", size);
    SHOW(nvrtcGetPTXSize, program, &size);
    char* ptx = calloc(size + 1, 1);
    SHOW(nvrtcGetPTX, program, ptx);
    puts(ptx);
    free(ptx);
    SHOW(nvrtcDestroyProgram, &program);
}

int main(void) {
    int major = 0;
    int minor = 0;
    SHOW(nvrtcVersion, &major, &minor);
    printf("version %d.%d\n", major, minor);
    compile("extern \"C\" __global__ void add(float* to, const float* from) { to[threadIdx.x] += from[threadIdx.x]; }");
    compile("extern \"C\" __global__ void wrong() { nothing(); }");
    return 0;
}
