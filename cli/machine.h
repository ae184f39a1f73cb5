// The GPUs of the machine, as far as one command has to know them. Each question costs the start of a driver, so it is
// asked when the answer is needed, and once.
#pragma once

#include <optional>

#include "cli/environment.h"
#include "cli/gpu_query.h"
#include "cli/installation.h"
#include "config/settings.h"

namespace cuslice::cli {

class Machine {
  public:
    Machine(const Environment& environment, const Settings& settings, const Installation& installation);

    /// All of them, in PCI order, which is how `ordinal` counts them.
    const Gpus& all();
    /// Those that CUDA_VISIBLE_DEVICES leaves, in its order; `ordinal` is the place in PCI order, -1 if the driver does
    /// not list it (a MIG device that only its UUID brings up). None where the driver sees none.
    const std::vector<Gpu>& allowed();
    /// The same in the order in which CUDA counts them, also where the variable is not set.
    const std::vector<Gpu>& in_order();
    /// From here on these are all that there are to choose from, by their UUIDs, and CUDA_VISIBLE_DEVICES says so.
    void narrow(std::string_view uuids);
    /// The one that a UUID or the beginning of one brings up, although the driver does not list it.
    std::optional<Gpu> unlisted(const std::string& uuid);
    /// What is free on a GPU now. Asks again.
    void refresh(std::vector<Gpu>& gpus);

  private:
    const std::vector<Gpu>& ask_visible();

    Environment environment_;
    const Settings& settings_;
    const Installation& installation_;
    std::optional<Gpus> all_;
    std::optional<std::vector<Gpu>> allowed_, in_order_;
};

}  // namespace cuslice::cli
