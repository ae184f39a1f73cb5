// The live view of `cuslice top`.
#pragma once

#include <cstdint>
#include <functional>

#include "cli/top/gpu_watch.h"
#include "cli/top/snapshot.h"

namespace cuslice::cli::top {

struct View {
    /// What is to be seen now, given what the GPUs have answered last (null: nothing yet).
    std::function<Snapshot(const Gpus*)> look;
    /// Asks the machine for its GPUs. In a process of its own.
    std::function<Gpus()> ask;
    std::uint64_t interval = 0;  // milliseconds from one frame to the next
};

/// Draws until `q` is pressed, or the terminal is gone. Signals that end a process end this one as they always do,
/// after the terminal was given back.
void show_live(const View& view);

/// What keys ask for, as a terminal sends them. An escape sequence may come in pieces.
class Keys {
  public:
    enum class Wish : std::uint8_t { none, quit, up, down, page_up, page_down, top, bottom };
    /// What `byte` completes.
    Wish read(char byte);

  private:
    std::string sequence_;
};

}  // namespace cuslice::cli::top
