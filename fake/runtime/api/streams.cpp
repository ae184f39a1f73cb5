// SPDX-License-Identifier: Apache-2.0
// Streams and events as objects. What is put on a stream: stream_work.cpp.

#include "fake/runtime/forward.h"

using namespace cuslice::fake;

CUSLICE_FORWARD(cudaStreamCreateWithPriority, cuStreamCreateWithPriority, 5050, stream, flags, priority)
CUSLICE_FORWARD(cudaStreamCreateWithFlags, cuStreamCreate, 2000, stream, flags)

cudaError_t cudaStreamCreate(cudaStream_t* stream) { return cudaStreamCreateWithFlags(stream, cudaStreamDefault); }

CUSLICE_FORWARD(cudaStreamDestroy, cuStreamDestroy, 4000, stream)
CUSLICE_FORWARD(cudaEventCreateWithFlags, cuEventCreate, 2000, event, flags)

cudaError_t cudaEventCreate(cudaEvent_t* event) { return cudaEventCreateWithFlags(event, cudaEventDefault); }

CUSLICE_FORWARD(cudaEventDestroy, cuEventDestroy, 4000, event)
CUSLICE_FORWARD(cudaEventQuery, cuEventQuery, 2000, event)
CUSLICE_FORWARD(cudaEventSynchronize, cuEventSynchronize, 2000, event)
