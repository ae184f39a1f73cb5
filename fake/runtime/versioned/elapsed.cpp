// Time between two events. The form of 12.8 measures with the end event's own clock; 12 has both.

#include "fake/runtime/versioned/form.h"

using namespace cuslice::fake;

#if CUSLICE_CUDART_VERSION >= 13000

cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t start, cudaEvent_t end) {
    return in_context(CU(cuEventElapsedTime, 12080), milliseconds, start, end);
}

#else

extern "C" cudaError_t elapsed_v2(float*, cudaEvent_t, cudaEvent_t) CUSLICE_EXPORT_AS(cudaEventElapsedTime_v2);

cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t start, cudaEvent_t end) {
    return in_context(CU(cuEventElapsedTime, 2000), milliseconds, start, end);
}

cudaError_t elapsed_v2(float* milliseconds, cudaEvent_t start, cudaEvent_t end) {
    return in_context(CU(cuEventElapsedTime, 12080), milliseconds, start, end);
}

#endif
