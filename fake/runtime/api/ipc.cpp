// SPDX-License-Identifier: Apache-2.0
// Memory and events that another process opens.

#include "fake/runtime/forward.h"

using namespace cuslice::fake;

CUSLICE_FORWARD(cudaIpcGetMemHandle, cuIpcGetMemHandle, 4010, handle, pointer)
CUSLICE_FORWARD(cudaIpcOpenMemHandle, cuIpcOpenMemHandle, 11000, pointer, handle, flags)
CUSLICE_FORWARD(cudaIpcCloseMemHandle, cuIpcCloseMemHandle, 4010, pointer)
CUSLICE_FORWARD(cudaIpcGetEventHandle, cuIpcGetEventHandle, 4010, handle, event)
CUSLICE_FORWARD(cudaIpcOpenEventHandle, cuIpcOpenEventHandle, 4010, event, handle)
