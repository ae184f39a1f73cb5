// SPDX-License-Identifier: Apache-2.0
// One rule of the system: whom it is for, and the most memory and time that they may have.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "config/key.h"
#include "config/rules/identity.h"
#include "config/text.h"

namespace cuslice::rules {

/// The values of one condition, any of which may fit.
class Values {
  public:
    /// False, and nothing is kept, where there is no more room. No value has a newline in it.
    bool add(std::string_view value);
    bool empty() const { return text_.empty(); }
    /// Each of them, with a newline behind it.
    std::string_view lines() const { return text_.view(); }

  private:
    FixedText<4096> text_;
};

/// A ceiling of a rule: an amount of memory, a share of time or its cap, on every GPU or on one.
struct Limit {
    Key key = Key::limit;
    FixedText<64> gpu;  // empty: every one
    FixedText<64> value;
    uint64_t number = 0;            // as parse_value() (value.h) has read it
    unsigned line = 0, column = 0;  // of its key, from 1
};

/// With whom a process shares the slice of its rule.
enum class Share : uint8_t {
    nobody,
    user,    // all processes of its user that the rule is for
    cgroup,  // those of them in the same cgroup, which is the one that the pattern fits
};

struct Rule {
    static constexpr size_t kMaxLimits = 64;
    static constexpr size_t kMaxName = 40;

    FixedText<kMaxName + 1> name;
    Values user, group, cgroup, executable;
    Limit limits[kMaxLimits];
    size_t limit_count = 0;
    Share share = Share::nobody;
    /// Where it begins.
    std::string_view path;
    unsigned line = 0, column = 0;

    std::span<const Limit> limit_list() const { return {limits, limit_count}; }
};

/// The texts of the machine's /etc/passwd and /etc/group.
struct AccountFiles {
    std::string_view users, groups;
};

/// A setting whose ceiling a rule may have, under the rule's own word: `share` says there with whom a slice is shared.
struct CeilingWord {
    std::string_view name;
    Key key;
};
inline constexpr CeilingWord kCeilingWords[] = {
    {"fraction", Key::fraction},
    {"limit", Key::limit},
    {"time-share", Key::share},
    {"time-share-cap", Key::share_cap},
};

/// The rule's word for a ceiling.
std::string_view word_of(const Limit& limit);

enum class Condition : uint8_t { none, user, group, cgroup, executable };

/// Result of matching a rule with a process, and the reason for it.
struct Match {
    bool fits = false;
    /// The first condition that doesn't fit; else the first of which it can't be told; else none, as all of them fit.
    Condition decided_by = Condition::none;
    /// Why it can't be told of that condition.
    Doubt doubt = Doubt::none;
};

/// Every condition that a rule has must fit. What can't be told for sure counts against the process: a rule with a
/// limit is for it then, and one without is not. Pure.
Match match(const Rule& rule, const Identity& identity, const AccountFiles& files);

/// The outermost cgroup of the process that one of the rule's patterns fits; empty if none does. Pure.
std::string_view fitting_cgroup(const Rule& rule, const Identity& identity);

}  // namespace cuslice::rules
