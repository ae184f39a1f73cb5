// SPDX-License-Identifier: Apache-2.0
#include "fake/spec/reader.h"

#include <dirent.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include "fake/duration.h"
#include "fake/spec/keys.h"
#include "fake/spec/mig.h"

#define TOML_HEADER_ONLY 1
#define TOML_EXCEPTIONS 0
#include <toml++/toml.h>

namespace cuslice::fake {
namespace {

/// One table being read. Every message names file, line and column.
class TableReader {
  public:
    TableReader(std::string folder, std::string path, bool in_profile, std::string& error)
        : folder_(std::move(folder)), path_(std::move(path)), in_profile_(in_profile), error_(error) {}

    bool fail(const toml::source_region& where, const std::string& what) {
        error_ =
            path_ + ":" + std::to_string(where.begin.line) + ":" + std::to_string(where.begin.column) + ": " + what;
        return false;
    }

    bool read(const toml::table& table, GpuSpec& gpu, uint64_t& copies) {
        // The profile first, whatever its place in the table: the other keys override it.
        if (const toml::node* node = table.get("profile"); node != nullptr && !in_profile_) {
            const auto name = node->value_exact<std::string>();
            if (!name)
                return fail(node->source(), "profile must be a string, such as \"t4\"");
            std::string why;
            if (!read_profile(folder_, *name, gpu, why))
                return fail(node->source(), why);
        } else if (!in_profile_) {
            return fail(table.source(), "[[gpu]] needs a profile; the profiles are: " + known_profiles(folder_));
        }
        for (const auto& [name, node] : table) {
            const std::string text(name.str());
            const Key* key = find_key(text);
            if (key == nullptr || (in_profile_ && key->of_gpu_only)) {
                return fail(name.source(), "unknown key '" + text + "'; the keys are: " + known_keys(in_profile_));
            }
            if (!set(*key, node, gpu, copies))
                return false;
        }
        std::string why;
        if (!check_instances(gpu, why))
            return fail(table.get("mig")->source(), why);
        return true;
    }

    bool read_driver(const toml::table& table, DriverSpec& driver) {
        for (const auto& [name, node] : table) {
            const auto& keys = driver_keys();
            const auto key =
                std::find_if(keys.begin(), keys.end(), [text = name.str()](const auto& k) { return text == k.name; });
            if (key == keys.end()) {
                std::string known;
                for (const DriverKey& one : keys)
                    known += (known.empty() ? "" : ", ") + std::string(one.name);
                return fail(name.source(), "unknown key '" + std::string(name.str()) + "'; the keys are: " + known);
            }
            if (!set_driver(*key, node, driver))
                return false;
        }
        if (driver.cuda_version() < driver.release_cuda_version())
            return fail(table.get("cuda")->source(), "cuda is older than what driver " + driver.version + " brings");
        return true;
    }

  private:
    bool set(const Key& key, const toml::node& node, GpuSpec& gpu, uint64_t& copies) {
        const std::string name = key.name;
        const auto text = node.value_exact<std::string>();
        const auto number = node.value_exact<int64_t>();
        switch (key.kind) {
            case KeyKind::Profile:
                return true;
            case KeyKind::Size: {
                uint64_t bytes = 0;
                std::string why;
                if (number)
                    return set_number(key, node, std::to_string(*number), gpu);
                if (!text)
                    return fail(node.source(), name + " must be a size with its unit, such as \"2002MiB\"");
                if (!parse_size(*text, bytes, why))
                    return fail(node.source(), name + ": " + why);
                return store(key, node, bytes, *text, gpu);
            }
            case KeyKind::Count:
            case KeyKind::Copies: {
                if (!number)
                    return fail(node.source(), name + " must be a whole number");
                const auto value = static_cast<uint64_t>(*number);
                if (*number < 0 || value < key.least || value > key.most) {
                    return fail(node.source(), name + " = " + std::to_string(*number) + " is not within " +
                                                   std::to_string(key.least) + " to " + std::to_string(key.most));
                }
                if (key.kind == KeyKind::Copies) {
                    copies = value;
                    return true;
                }
                return store(key, node, value, std::to_string(value), gpu);
            }
            case KeyKind::Duration: {
                uint64_t value = 0;
                if (!text || !parse_duration(*text, value) || value < key.least || value > key.most) {
                    return fail(node.source(), name + " must be a time, such as \"2ms\", of " +
                                                   std::to_string(key.least) + " to " + std::to_string(key.most) +
                                                   " ns");
                }
                gpu.*std::get<uint64_t GpuSpec::*>(key.member) = value;
                return true;
            }
            case KeyKind::Flag: {
                const auto flag = node.value_exact<bool>();
                if (!flag)
                    return fail(node.source(), name + " must be true or false");
                gpu.*std::get<bool GpuSpec::*>(key.member) = *flag;
                return true;
            }
            case KeyKind::Text:
            case KeyKind::Brand: {
                if (!text || text->empty())
                    return fail(node.source(), name + " must be a string that isn't empty");
                const char* brands[] = {"geforce", "tesla", "nvidia", "quadro", "titan"};
                if (key.kind == KeyKind::Brand && std::find(brands, std::end(brands), *text) == std::end(brands)) {
                    return fail(node.source(),
                                "brand = \"" + *text + "\"; it is one of geforce, tesla, nvidia, quadro, titan");
                }
                gpu.*std::get<std::string GpuSpec::*>(key.member) = *text;
                return true;
            }
            case KeyKind::Capability: {
                int end = 0;
                if (!text || std::sscanf(text->c_str(), "%2d.%1d%n", &gpu.major, &gpu.minor, &end) != 2 ||
                    end != static_cast<int>(text->size()) || gpu.major < 5 || gpu.major > 12) {
                    return fail(node.source(), name + " must be a string from \"5.0\" to \"12.9\"");
                }
                return true;
            }
            case KeyKind::Identity:
                return (text && parse_uuid(*text, gpu.uuid)) ||
                       fail(node.source(), "uuid must look like \"GPU-5f1c0a3e-0123-4567-89ab-0123456789ab\"");
            case KeyKind::Instances:
                return set_instances(node, gpu);
            case KeyKind::Pci:
                return (text && parse_pci(*text, gpu.pci)) ||
                       fail(node.source(), "pci must look like \"0000:81:00.0\"");
        }
        return fail(node.source(), name + " can't be read");
    }

    bool set_instances(const toml::node& node, GpuSpec& gpu) {
        const toml::array* list = node.as_array();
        if (list == nullptr)
            return fail(node.source(), "mig must be a list of instances, such as [\"1g.18gb\"]");
        gpu.mig.clear();
        for (const toml::node& item : *list)
            gpu.mig.push_back(item.value_exact<std::string>().value_or(""));
        return true;
    }

    bool set_driver(const DriverKey& key, const toml::node& node, DriverSpec& driver) {
        const auto text = node.value_exact<std::string>();
        const auto number = node.value_exact<int64_t>();
        const auto flag = node.value_exact<bool>();
        const std::string name = key.name;
        std::string why = "must be a string";
        switch (key.kind) {
            case DriverKeyKind::Number:
                if (!number)
                    return fail(node.source(), name + " must be a whole number");
                driver.*std::get<int64_t DriverSpec::*>(key.member) = *number;
                return true;
            case DriverKeyKind::Flag:
                if (!flag)
                    return fail(node.source(), name + " must be true or false");
                driver.*std::get<bool DriverSpec::*>(key.member) = *flag;
                return true;
            default:
                return (text && set_driver_key(key, *text, driver, why)) || fail(node.source(), name + " " + why);
        }
    }

    bool set_number(const Key& key, const toml::node& node, const std::string& digits, GpuSpec& gpu) {
        uint64_t bytes = 0;
        std::string why;
        if (!parse_size(digits, bytes, why))
            return fail(node.source(), std::string(key.name) + ": " + why);
        return store(key, node, bytes, digits, gpu);
    }

    bool store(const Key& key, const toml::node& node, uint64_t value, const std::string& written, GpuSpec& gpu) {
        if (value < key.least || value > key.most) {
            return fail(node.source(), std::string(key.name) + " = \"" + written + "\" is not within " +
                                           std::to_string(key.least) + " to " + std::to_string(key.most) + " bytes");
        }
        gpu.*std::get<uint64_t GpuSpec::*>(key.member) = value;
        return true;
    }

    std::string folder_, path_;
    bool in_profile_;
    std::string& error_;
};

bool parse_file(const std::string& path, toml::table& table, std::string& error) {
    if (access(path.c_str(), R_OK) != 0) {
        error = path + ": cannot be read: " + std::strerror(errno);
        return false;
    }
    toml::parse_result parsed = toml::parse_file(path);
    if (!parsed) {
        const auto& where = parsed.error().source().begin;
        error = path + ":" + std::to_string(where.line) + ":" + std::to_string(where.column) + ": " +
                std::string(parsed.error().description());
        return false;
    }
    table = std::move(parsed).table();
    return true;
}

std::vector<std::string> profile_names(const std::string& folder) {
    std::vector<std::string> names;
    if (DIR* dir = opendir(folder.c_str())) {
        while (const dirent* entry = readdir(dir)) {
            const std::string file = entry->d_name;
            if (file.size() > 5 && file.ends_with(".toml"))
                names.push_back(file.substr(0, file.size() - 5));
        }
        closedir(dir);
    }
    std::sort(names.begin(), names.end());
    return names;
}

}  // namespace

std::string known_profiles(const std::string& folder) {
    std::string list;
    for (const std::string& name : profile_names(folder))
        list += (list.empty() ? "" : ", ") + name;
    return list.empty() ? "none (there is no profile in " + folder + ")" : list;
}

bool read_profile(const std::string& folder, const std::string& name, GpuSpec& gpu, std::string& error) {
    std::string wanted = name;
    std::transform(wanted.begin(), wanted.end(), wanted.begin(), [](unsigned char c) { return std::tolower(c); });
    const auto names = profile_names(folder);
    if (std::find(names.begin(), names.end(), wanted) == names.end()) {
        const bool times = wanted.find('*') != wanted.npos;
        error = "there is no profile '" + name + "'; " + (times ? "a number goes before an x, as 4xt4; " : "");
        error += "the profiles are: " + known_profiles(folder);
        return false;
    }
    const std::string path = folder + "/" + wanted + ".toml";
    toml::table table;
    if (!parse_file(path, table, error))
        return false;
    uint64_t copies = 1;
    if (!TableReader(folder, path, true, error).read(table, gpu, copies))
        return false;
    for (const Key& key : keys()) {
        if (!key.of_gpu_only && table.get(key.name) == nullptr) {
            error = path + ": the profile lacks the key '" + key.name + "'";
            return false;
        }
    }
    gpu.profile = wanted;
    return true;
}

bool read_machine_file(const std::string& folder, const std::string& path, MachineSpec& machine, std::string& error) {
    toml::table table;
    if (!parse_file(path, table, error))
        return false;
    TableReader reader(folder, path, false, error);
    for (const auto& [name, node] : table) {
        if (name.str() == "driver" && node.is_table())
            continue;
        if (name.str() != "gpu" || !node.is_array_of_tables()) {
            return reader.fail(name.source(), "unknown key '" + std::string(name.str()) +
                                                  "'; the file holds [[gpu]] tables and one [driver]");
        }
    }
    DriverSpec driver;
    if (const toml::table* own = table["driver"].as_table(); own != nullptr && !reader.read_driver(*own, driver))
        return false;
    const toml::array* gpus = table["gpu"].as_array();
    if (gpus == nullptr || gpus->empty()) {
        error = path + ": no [[gpu]] table; write one for each fake GPU, such as [[gpu]] with profile = \"t4\"";
        return false;
    }
    for (const toml::node& node : *gpus) {
        GpuSpec gpu;
        uint64_t copies = 1;
        gpu.driver = driver;
        if (!reader.read(*node.as_table(), gpu, copies))
            return false;
        const bool fixed = gpu.uuid != Uuid{} || !(gpu.pci == PciAddress{});
        if (copies > 1 && fixed)
            return reader.fail(node.source(), "count and uuid or pci exclude each other");
        machine.insert(machine.end(), copies, gpu);
    }
    return true;
}

}  // namespace cuslice::fake
