// SPDX-License-Identifier: Apache-2.0
// The variables by which TensorFlow and JAX are told of a slice, and who sets which of them. One table for the
// launcher, which sets them before a program starts, and for the preloaded library, which sets what it still can.
//
// A value that cuslice has set is written down beside it (FrameworkRecord): a process that inherits both knows it from
// one of the user's, and replaces it by what its own settings say.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "config/key.h"
#include "config/settings.h"
#include "config/text.h"
#include "policy/frameworks/slice_room.h"

namespace cuslice {

/// The last moment at which setting a variable still reaches its framework.
enum class FrameworkRead : uint8_t {
    at_start,     // read before the first CUDA call, as by Python's os.environ
    after_cuinit  // read by getenv once cuInit has returned
};

enum class FrameworkKey : uint8_t { tensorflow_growth, jax_preallocate, tensorflow_reserve, jax_fraction };
inline constexpr size_t kFrameworkKeys = 4;

struct FrameworkVariable {
    FrameworkKey key;
    std::string_view name;
    FrameworkRead read;
    /// Another name for the same: where it is set, this one must not be. Empty if there is none.
    std::string_view synonym;
};

std::span<const FrameworkVariable> framework_variables();

/// no-framework-env: their variables are the program's own business.
bool leaves_frameworks_alone(const Settings& settings);
/// True if memory is to grow on any GPU, if there is such a one. GPUs are not asked for: a setting counts unless a
/// stronger source says otherwise of the same GPU, or of all.
bool any_grows(const Settings& settings);
/// The same, as far as the environment alone says it: by CUSLICE_ALLOCATOR, and unless CUSLICE_NO_FRAMEWORK_ENV. Files
/// are not read.
bool grows_by_environment(const char* const* environment);

/// The values that the settings call for; empty where a variable is not to be set.
class FrameworkValues {
  public:
    /// Where memory is to grow: no pool that is taken in one piece, which no allocator underneath can make smaller.
    void grow();
    /// Adds a slice that the program sees. A variable is one for all GPUs of the process: it is right for the slice
    /// that has least left.
    void add(const SliceRoom& room);
    void add(std::span<const SliceRoom> rooms) {
        for (const SliceRoom& room : rooms)
            add(room);
    }

    using Text = FixedText<24>;
    Text of(FrameworkKey key) const;

  private:
    Text reserve() const;
    Text fraction() const;

    bool grows_ = false;
    bool limited_ = false;
    /// TensorFlow's, in bytes: of the slices that have to leave something.
    std::optional<uint64_t> least_reserve_;
    /// JAX's, in parts of 10^4.
    std::optional<unsigned> least_fraction_;
    bool fraction_known_ = true;
};

/// The value of kFrameworkRecord: NAME=VALUE of each variable that cuslice has set for this process or for one that it
/// descends from, divided by commas. What is not of that form is no record of ours and is left out.
class FrameworkRecord {
  public:
    explicit FrameworkRecord(std::string_view text);

    /// A null view if it was not set by cuslice.
    std::string_view find(const FrameworkVariable& variable) const;
    void set(const FrameworkVariable& variable, std::string_view value);
    void drop(const FrameworkVariable& variable);
    FixedText<256> text() const;

  private:
    FixedText<24> values_[kFrameworkKeys];
    bool known_[kFrameworkKeys] = {};
};

/// The work that one variable makes.
enum class FrameworkChange : uint8_t { keep, set, remove };

/// Compares the environment with the value that is wanted, and notes the outcome in `record`. A value of the user's
/// stays, and so does the absence of one that the program has removed. Pure but for `record`.
FrameworkChange plan_change(const FrameworkVariable& variable, std::string_view wanted, const char* const* environment,
                            FrameworkRecord& record);

}  // namespace cuslice
