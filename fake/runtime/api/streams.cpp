// Streams and events as objects. What is put on a stream: stream_work.cpp.

#include "fake/runtime/state.h"

using namespace cuslice::fake;

cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned int flags, int priority) {
    return in_context(CU(cuStreamCreateWithPriority, 5050), stream, flags, priority);
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned int flags) {
    return in_context(CU(cuStreamCreate, 2000), stream, flags);
}

cudaError_t cudaStreamCreate(cudaStream_t* stream) { return cudaStreamCreateWithFlags(stream, cudaStreamDefault); }

cudaError_t cudaStreamDestroy(cudaStream_t stream) { return in_context(CU(cuStreamDestroy, 4000), stream); }

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned int flags) {
    return in_context(CU(cuEventCreate, 2000), event, flags);
}

cudaError_t cudaEventCreate(cudaEvent_t* event) { return cudaEventCreateWithFlags(event, cudaEventDefault); }

cudaError_t cudaEventDestroy(cudaEvent_t event) { return in_context(CU(cuEventDestroy, 4000), event); }

cudaError_t cudaEventQuery(cudaEvent_t event) { return in_context(CU(cuEventQuery, 2000), event); }

cudaError_t cudaEventSynchronize(cudaEvent_t event) { return in_context(CU(cuEventSynchronize, 2000), event); }
