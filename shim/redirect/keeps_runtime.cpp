// SPDX-License-Identifier: Apache-2.0
#include "shim/redirect/keeps_runtime.h"

#include <unistd.h>

#include "policy/base/own_descriptors.h"
#include "shim/log.h"

namespace cuslice {

namespace {

void say(std::string_view module, std::string_view between, std::string_view text) {
    LogLine line;
    line.append("cuslice: --redirect-runtime: ", module, between, text, "\n");
    write_at_once(STDERR_FILENO, line.c_str(), line.view().size());
}

}  // namespace

void say_of_module(std::string_view module, std::string_view what) { say(module, ": ", what); }

void say_keeps_runtime(std::string_view module, std::string_view why) {
    say(module, " keeps its static CUDA runtime: ", why);
}

}  // namespace cuslice
