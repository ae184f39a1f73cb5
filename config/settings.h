// SPDX-License-Identifier: Apache-2.0
// All settings of one process, with where each came from. Filled once by load.h, then only read.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "config/config_error.h"
#include "config/gpu_selector.h"
#include "config/key.h"
#include "config/log_setting.h"
#include "config/value.h"

namespace cuslice {

/// Where a setting came from, strongest first.
enum class Source : uint8_t {
    flag,
    environment,
    config_file,
    current_folder,
    user_file,
    system_file,
    outer_job,  // around the job that a launcher starts: ceilings alone
    other_tools,
    rule,   // of the system: ceilings alone
    cgroup  // what the kernel allows this process's cgroup: ceilings alone
};

/// "flag", "environment", "config-file", "current-folder", "user-file", "system-file", "outer-job", "other-tools",
/// "rule", "cgroup".
std::string_view name_of(Source source);

/// Kind of ceiling that a source sets: those of the system's file, outer jobs, rules and cgroups hold side by side.
constexpr Source kind_of_ceiling(Source source) {
    const bool own_kind = source == Source::outer_job || source == Source::rule || source == Source::cgroup;
    return own_kind ? source : Source::system_file;
}

/// True for the files of settings: the named one, the current folder's, the user's and the system's.
constexpr bool is_file(Source source) { return source >= Source::config_file && source <= Source::system_file; }

/// Handling of memory that a program frees.
enum class AllocatorMode : uint8_t { direct, growth, prealloc };
enum class FreeMode : uint8_t { strict, deferred };
/// When a limit is reserved: as the launcher starts a job, or as a process makes its first context on a GPU.
enum class Admission : uint8_t { launch, first_context };

/// How strong a setting is. Within one source a lower level is stronger: what a program sets is level 0; what it was
/// handed by the launcher that started it, or by that one's launcher, is one more each time.
struct Rank {
    Source source = Source::flag;
    uint8_t level = 0;

    auto operator<=>(const Rank&) const = default;  // NOLINT(modernize-use-nullptr): there is no pointer
};

/// One setting. The texts belong to the Settings that hold it.
struct Entry {
    Key key = Key::limit;
    /// A maximum that the system's file sets, instead of a value.
    bool ceiling = false;
    /// headroom = auto.
    bool automatic = false;
    /// limit = SIZE+context, split = SIZES+context.
    bool plus_context = false;
    Rank rank;
    GpuSelector selector;
    /// As written: "40%".
    std::string_view value;
    /// As parse_value() (value.h) has read it.
    uint64_t number = 0;
    /// "--limit", "CUSLICE_LIMIT", "/etc/cuslice/cuslice.toml:3:1", and "ceiling " before it for a ceiling; for a
    /// rule's "rule NAME (/etc/cuslice/rules.d/10-lab.toml:4:1)"; "dmem.max of cgroup /system.slice".
    std::string_view origin;
};

/// Says in `error` why a setting can't hold: where it came from, its key if that is a file, and its value as written.
/// Returns false.
bool refuse_entry(const Entry& entry, std::string_view why, ConfigError& error);

/// Argument of Settings::add, which copies the texts.
struct NewEntry {
    Key key = Key::limit;
    bool ceiling = false;
    Rank rank;
    GpuSelector selector;
    std::string_view value;
    std::string_view origin;
    /// The number that `value` means, where it is written by another tool's rules; else the key's own rules read it.
    std::optional<uint64_t> number;
};

/// The settings, in space of their own: no allocation, about 50 KiB. Not copyable, since its entries point into it. One
/// thread fills it; any number may read it afterwards.
class Settings {
  public:
    static constexpr size_t kMaxEntries = 256;
    static constexpr size_t kTextBytes = size_t{32} * 1024;

    Settings() {}
    Settings(const Settings&) = delete;
    Settings& operator=(const Settings&) = delete;

    /// Checks and keeps one setting. Refused, with the reason alone in `why`: a value that the key does not take, a
    /// second value from the same source for the same GPU (fraction and limit are one question), and more than there is
    /// room for.
    bool add(const NewEntry& entry, Reason& why);

    std::span<const Entry> entries() const { return {entries_, count_}; }

    /// True if any entry names a GPU by its index, so that the order of the GPUs by PCI id must be known.
    bool needs_index() const;

    /// A file that can't be looked for, since a folder on the way to it can't be entered; empty if there is none.
    std::string_view unreachable_file() const { return unreachable_file_; }
    /// Keeps the first of them.
    void pass_over(std::string_view path);

    /// The account of the ledgers in which a rule of the system has processes share its slice: the rule's name, and
    /// for share = "cgroup" `@` and 16 digits for the cgroup. Empty if none holds that does.
    std::string_view shared_rule() const { return shared_rule_; }
    void share_rule(std::string_view account) { shared_rule_ = keep(account); }
    /// `dir` of the system's own file, also where the other settings were handed on; empty if there is none.
    std::string_view system_folder() const { return system_folder_; }
    void use_system_folder(std::string_view path) { system_folder_ = keep(path); }

  private:
    std::string_view keep(std::string_view text);

    // Small members come before the large ones, of which a process uses only the beginning.
    size_t count_ = 0;
    size_t text_size_ = 0;
    std::string_view unreachable_file_, shared_rule_, system_folder_;
    union {
        Entry entries_[kMaxEntries];  // not made before they are added
    };
    char text_[kTextBytes];
};

/// Adds what one option or variable says: "4GiB", or for a key per GPU "0=4GiB,GPU-5f=2048MiB". `origin` is its name.
bool add_list(Settings& settings, Key key, Rank rank, std::string_view origin, std::string_view text,
              ConfigError& error);

}  // namespace cuslice
