#pragma once
#include <cstddef>
#include <cstdint>

namespace cuslice {

// Which of our functions stands before one of the real driver's.
class HookMap {
  public:
    // Fills the map from the driver's table. Not thread-safe.
    void build();

    // Our hook for the driver's function at this address; null if none stands before it.
    void* hook_for(const void* real) const;

    // True if some form of the function with this name (as cuGetProcAddress takes it: no version, no stream suffix) is
    // hooked.
    static bool is_hooked_name(const char* name);

    // True if the address is one that the driver exports under this name, in a form that passes through.
    static bool is_listed_form(const char* name, const void* real);

  private:
    struct Row {
        const void* real;
        void* hook;
    };
    static constexpr std::size_t kRows = 256;  // a power of two, several times the number of hooks
    static std::size_t home(const void* real) { return (reinterpret_cast<std::uintptr_t>(real) >> 4) % kRows; }

    Row rows_[kRows];
};

// The process's map, built at the first call, which must come after the driver was loaded. Thread-safe.
const HookMap& hook_map();

}  // namespace cuslice
