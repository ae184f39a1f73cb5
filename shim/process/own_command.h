// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "config/brief_command.h"

namespace cuslice {

// The program of this process, without its arguments ("python train.py"); empty where /proc doesn't say. Keeps errno.
BriefCommand own_command();

}  // namespace cuslice
