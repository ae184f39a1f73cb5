// SPDX-License-Identifier: Apache-2.0
// Stream capture, and graphs on streams. Built twice: legacy and per-thread default stream (_ptsz).

#include "fake/runtime/forward.h"

using namespace cuslice::fake;

CUSLICE_FORWARD_STREAM(cudaStreamBeginCapture, cuStreamBeginCapture, 10010, stream, mode)
CUSLICE_FORWARD_STREAM(cudaStreamBeginCaptureToGraph, cuStreamBeginCaptureToGraph, 12030, stream, graph, dependencies,
                       edges, count, mode)
CUSLICE_FORWARD_STREAM(cudaStreamEndCapture, cuStreamEndCapture, 10000, stream, graph)
CUSLICE_FORWARD_STREAM(cudaStreamIsCapturing, cuStreamIsCapturing, 10000, stream, status)
CUSLICE_FORWARD_STREAM(cudaGraphLaunch, cuGraphLaunch, 10000, executable, stream)
CUSLICE_FORWARD_STREAM(cudaGraphUpload, cuGraphUpload, 11010, executable, stream)
CUSLICE_FORWARD_STREAM(cudaGraphInstantiateWithParams, cuGraphInstantiateWithParams, 12000, executable, graph,
                       parameters)
