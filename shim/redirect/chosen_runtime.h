// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <link.h>

#include "config/text.h"
#include "shim/redirect/plan.h"
#include "shim/redirect/runtime_file.h"
#include "shim/redirect/symbol_table.h"

namespace cuslice {

// The shared runtime for a library that carries a static one, told by files alone: where a library is being loaded, no
// other can be. For one thread.
class ChosenRuntime {
  public:
    // The first file of this major version for which `plan` can be made: the one that CUSLICE_RUNTIME names, or else
    // one that is loaded, one that the loader would find, or any_runtime_elsewhere(). False if there is none: `why`
    // says so, or is the last one's.
    bool choose(int major, const SymbolTable& symbols, const link_map& library, RedirectPlan& plan, Reason& why);
    const char* path() { return file_.functions().path; }

  private:
    // How a file is judged, as long as one is sought.
    struct Judge {
        RuntimeFile& file;
        int major;
        const SymbolTable& symbols;
        RedirectPlan& plan;
        Reason& why;
        bool takes(const char* path) const;
    };
    static bool take_named(const char* path, const Judge& judge);
    static bool take_loaded(const link_map& library, const Judge& judge);
    static bool take_of_loader(const Judge& judge);

    RuntimeFile file_;
};

}  // namespace cuslice
