// Variables of HAMi and MPS that limit something else than memory. Who finds that cuslice reads their limits of memory
// believes that it reads these too.
#pragma once

#include "cli/environment.h"

namespace cuslice::cli {

/// One line for each that is set, unless the tool that serves it is here too. An outer launcher has said it already.
void warn_unserved(const Environment& environment);

}  // namespace cuslice::cli
