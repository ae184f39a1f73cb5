// SPDX-License-Identifier: Apache-2.0
// Time between two events. The form of 12.8 measures with the end event's own clock; 12 has both.

#include "fake/runtime/versioned/form.h"

using namespace cuslice::fake;

#if CUSLICE_CUDART_VERSION >= 13000

CUSLICE_FORWARD(cudaEventElapsedTime, cuEventElapsedTime, 12080, milliseconds, start, end)

#else

extern "C" cudaError_t elapsed_v2(float*, cudaEvent_t, cudaEvent_t) CUSLICE_EXPORT_AS(cudaEventElapsedTime_v2);

CUSLICE_FORWARD(cudaEventElapsedTime, cuEventElapsedTime, 2000, milliseconds, start, end)
CUSLICE_FORWARD(elapsed_v2, cuEventElapsedTime, 12080, milliseconds, start, end)

#endif
