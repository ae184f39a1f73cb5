// SPDX-License-Identifier: Apache-2.0
// Where settings come from: environment, files, other tools' variables, and what the launcher hands on.
#pragma once

#include <string_view>

#include "config/settings.h"
#include "config/system_places.h"

namespace cuslice {

/// Everything that a preloaded library reads, in one call: the launcher's hand-over where there is one, else the user's
/// and the system's file; in both cases the system's ceilings and rules, which nobody is trusted to hand on, the
/// environment (CUSLICE_*), CUSLICE_CONFIG's file and other tools' variables. Never the current folder. `environment`
/// ends with a nullptr. On failure `error` says why; `settings` then holds a part and is not to be used. Not for two
/// threads at once.
bool load_in_program(Settings& settings, const char* const* environment, OpenToml open_toml, const SystemPlaces& system,
                     ConfigError& error);

/// The parts of it, for the launcher.
/// CUSLICE_* of the environment, except CUSLICE_SETTINGS and the fake GPU's own; an unknown one is refused.
bool load_environment(Settings& settings, const char* const* environment, ConfigError& error);
/// CUDA_DEVICE_MEMORY_LIMIT[_i] and CUDA_DEVICE_SM_LIMIT[_i] (HAMi), and CUDA_MPS_PINNED_DEVICE_MEM_LIMIT (MPS).
bool load_other_tools(Settings& settings, const char* const* environment, ConfigError& error);

/// `unreachable`: a folder on the way to it can't be entered.
enum class FileState : uint8_t { absent, found, unreachable };
/// The part of the system's file to take: all of it, or only the ceilings that it sets for others.
enum class Take : uint8_t { everything, ceilings };
/// Reads one file; `source` says whose it is, and not that it is the system's. A file that is not there is `absent`,
/// and no error unless it is config_file's; an `unreachable` one of the user's is none either, and noted in `settings`.
/// One of the user's that another user can write chooses no code and no files.
bool load_file(Settings& settings, const char* path, Source source, OpenToml open_toml, FileState& state,
               ConfigError& error);
/// Reads the system's file, `absent` where there is none. Refused where others than root can write to it.
bool load_system_file(Settings& settings, const SystemPlaces& system, OpenToml open_toml, FileState& state,
                      ConfigError& error, Take take = Take::everything);
/// The file that a setting names: `origin` is "--config" or "CUSLICE_CONFIG".
bool load_named_file(Settings& settings, const char* path, std::string_view origin, OpenToml open_toml,
                     FileState& state, ConfigError& error);
/// The text of a file, already read. Pure, for tests and fuzzing.
bool load_file_text(Settings& settings, std::string_view text, std::string_view path, Source source,
                    cuslice_toml_parse_function* parse, ConfigError& error, Take take = Take::everything);

using Path = FixedText<4096>;
/// The user's file: $XDG_CONFIG_HOME/cuslice/cuslice.toml, else $HOME/.config/cuslice/cuslice.toml; empty if neither is
/// set.
Path user_file(const char* const* environment);

/// The value of a variable; a nullptr view if it is not set.
std::string_view variable(const char* const* environment, std::string_view name);

}  // namespace cuslice
