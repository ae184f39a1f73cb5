// Reading one file of settings.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "config/load.h"
#include "config/resolve.h"
#include "config/text_file.h"

namespace cuslice {
namespace {

bool check_kind(const TextFile& file, Source source, bool& by_others, Reason& why) {
    unsigned mode = 0, owner = 0, group = 0;
    if (!file.look(mode, owner, group, why)) return false;
    by_others = (owner != 0 && owner != ::geteuid()) || (mode & S_IWOTH) != 0;
    // Its ceilings are the administrator's; who may write them may raise them.
    if (source == Source::system_file && (mode & S_IWOTH) != 0) {
        why.assign("writable by everybody, so nobody can trust its ceilings: chmod o-w it");
        return false;
    }
    return true;
}

// Nobody may enter a folder on the way to it, so nobody can have meant it: a HOME of another user, as in containers. A
// path alone is opened wherever the folders may be entered, whoever may read the file.
bool is_unreachable(const char* path) {
    const int descriptor = ::open(path, O_PATH | O_CLOEXEC);
    if (descriptor < 0) return errno == EACCES;
    ::close(descriptor);
    return false;
}

bool runs_code_or_writes_files(const Entry& entry) {
    const bool writes_log = entry.key == Key::log && entry.value.find(':') != entry.value.npos;
    return entry.key == Key::driver || entry.key == Key::record || entry.key == Key::dir || writes_log;
}

// The user's file is found by a variable that programs hand on, as sudo may from one user to the next. Somebody else's
// chooses limits at most.
bool check_file_of_others(const Settings& settings, ConfigError& error) {
    for (const Entry& entry : settings.entries()) {
        if (entry.rank.source != Source::user_file || entry.rank.level != 0 || !runs_code_or_writes_files(entry))
            continue;
        Reason why(traits_of(entry.key).name);
        why.append(
            " is not taken from a file that another user can write: it could choose code to run or files to "
            "write to");
        return refuse_entry(entry, why.view(), error);
    }
    return true;
}

}  // namespace

bool load_file(Settings& settings, const char* path, Source source, OpenToml open_toml, FileState& state,
               ConfigError& error, Take take) {
    state = FileState::absent;
    Reason why;
    TextFile file;
    if (const int code = file.open(path); code != 0) {
        if (source != Source::config_file && (code == ENOENT || code == ENOTDIR)) return true;
        if (source == Source::user_file && code == EACCES && is_unreachable(path)) {
            state = FileState::unreachable;
            settings.pass_over(path);
            return true;
        }
        explain_errno(code, why);
        return error.set(path, why.view());
    }
    state = FileState::found;
    bool by_others = false;
    if (!check_kind(file, source, by_others, why) || !file.read(kMostOfSettings, why))
        return error.set(path, why.view());
    cuslice_toml_parse_function* const parse = open_toml(why);
    if (parse == nullptr) return error.set(path, why.view());
    if (!load_file_text(settings, file.view(), path, source, parse, error, take)) return false;
    return source != Source::user_file || !by_others || check_file_of_others(settings, error);
}

bool load_named_file(Settings& settings, const char* path, std::string_view origin, OpenToml open_toml,
                     FileState& state, ConfigError& error) {
    if (load_file(settings, path, Source::config_file, open_toml, state, error)) return true;
    // What is wrong with the file as a whole is wrong with the setting that names it.
    if (error.line != 0) return false;
    const Reason why(error.reason.view());
    return error.set(origin, path, why.view());
}

}  // namespace cuslice
