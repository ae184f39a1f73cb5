// SPDX-License-Identifier: Apache-2.0
// nvidia-smi for machines of fake GPUs: the part of NVIDIA's that scripts read, written from its manual, over whichever
// NVML the program is given. A program of its own, found by PATH.

#include <algorithm>
#include <cstdio>
#include <set>
#include <string>

#include "fake/items.h"
#include "fake/smi/gpu.h"
#include "fake/smi/table.h"

namespace cuslice::fake {
namespace {

// As in NVIDIA's manual.
constexpr int kInvalid = 2, kNotFound = 6, kNoDriver = 9;

constexpr const char* kHelp =
    "nvidia-smi of cuslice, for machines of fake GPUs\n"
    "\n"
    "  nvidia-smi                                   a table of the GPUs and of who holds memory on them\n"
    "  nvidia-smi -L, --list-gpus                   a line for each GPU\n"
    "  nvidia-smi --query-gpu=FIELDS --format=csv   fields of each GPU\n"
    "  nvidia-smi --query-compute-apps=FIELDS --format=csv\n"
    "                                               fields of each process that holds memory\n"
    "\n"
    "  -i, --id=GPUS           these alone: an index, UUID or PCI address, several divided by commas\n"
    "  --format=csv[,noheader][,nounits]\n"
    "  --help-query-gpu, --help-query-compute-apps  the fields\n"
    "  -h, --help              this text\n"
    "\n"
    "Under a limit the figures are the slice's. Nothing else of NVIDIA's nvidia-smi is here.\n";

struct Question {
    enum class Kind { table, list, gpus, apps, help, help_gpus, help_apps };
    Kind kind = Kind::table;
    std::string fields, ids, format;
};

int refuse(const std::string& why) {
    std::fprintf(stderr, "nvidia-smi of cuslice: %s; see nvidia-smi --help\n", why.c_str());
    return kInvalid;
}

std::vector<std::string> parts_of(const std::string& list) {
    std::vector<std::string> parts = items_of(list);
    for (std::string& part : parts) {
        part.erase(0, part.find_first_not_of(' '));
        part.erase(part.find_last_not_of(' ') + 1);
    }
    return parts;
}

/// True if `word` is this option, whose value then stands behind "=" or in the next word.
bool takes(const std::string& word, const char* option, int& i, int count, char** words, std::string& value) {
    const std::string name(option);
    if (word.starts_with(name + "=")) {
        value = word.substr(name.size() + 1);
        return true;
    }
    if (word != name || i + 1 >= count)
        return false;
    value = words[++i];
    return true;
}

/// False, with why in `error`, for what isn't here.
bool read_words(int count, char** words, Question& question, std::string& error) {
    using Kind = Question::Kind;
    for (int i = 1; i < count; i++) {
        const std::string word = words[i];
        if (word == "-h" || word == "--help")
            question.kind = Kind::help;
        else if (word == "--help-query-gpu")
            question.kind = Kind::help_gpus;
        else if (word == "--help-query-compute-apps")
            question.kind = Kind::help_apps;
        else if (word == "-L" || word == "--list-gpus")
            question.kind = Kind::list;
        else if (takes(word, "--query-gpu", i, count, words, question.fields))
            question.kind = Kind::gpus;
        else if (takes(word, "--query-compute-apps", i, count, words, question.fields))
            question.kind = Kind::apps;
        else if (!takes(word, "--format", i, count, words, question.format) &&
                 !takes(word, "--id", i, count, words, question.ids) &&
                 !takes(word, "-i", i, count, words, question.ids)) {
            error = "there is no option " + word;
            return false;
        }
    }
    return true;
}

struct Format {
    bool header = true, units = true;
};

bool read_format(const std::string& text, Format& format, std::string& error) {
    bool csv = false;
    for (const std::string& part : parts_of(text)) {
        if (part == "csv")
            csv = true;
        else if (part == "noheader")
            format.header = false;
        else if (part == "nounits")
            format.units = false;
        else if (!part.empty())
            return error = "there is no format " + part, false;
    }
    if (!csv)
        error = "a query needs --format=csv";
    return csv;
}

std::string heading(std::string_view name, std::string_view unit) {
    return std::string(name) + (unit.empty() ? "" : " [" + std::string(unit) + "]");
}

template <typename Row>
int print_query(const std::vector<Field<Row>>& known, const std::vector<Row>& rows, const Question& question) {
    Format format;
    std::string error;
    if (!read_format(question.format, format, error))
        return refuse(error);
    std::vector<const Field<Row>*> fields;
    std::string headings;
    for (const std::string& name : parts_of(question.fields)) {
        const Field<Row>* const field = find_field(known, name);
        if (field == nullptr) {
            std::printf("Field \"%s\" is not a valid field to query.\n", name.c_str());
            return kInvalid;
        }
        headings += (fields.empty() ? "" : ", ") + heading(name, field->unit);
        fields.push_back(field);
    }
    if (format.header)
        std::printf("%s\n", headings.c_str());
    for (const Row& row : rows) {
        std::string line;
        for (const Field<Row>* field : fields) {
            const Value value = field->read(row);
            if (field != fields.front())
                line += ", ";
            line += value.text;
            if (format.units && !value.unit.empty())
                line += " " + std::string(value.unit);
        }
        std::printf("%s\n", line.c_str());
    }
    return 0;
}

template <typename Row>
int print_fields(const std::vector<Field<Row>>& fields) {
    for (const Field<Row>& field : fields) {
        std::string names(field.name);
        if (!field.alias.empty())
            names += " or " + std::string(field.alias);
        std::printf("%-34s%s\n", names.c_str(), std::string(field.meaning).c_str());
    }
    return 0;
}

/// "0000:01:00.0" and "00000000:01:00.0" are one place.
bool is_bus_id(const std::string& bus_id, const std::string& id) {
    return id.size() >= 7 && id.find(':') != id.npos && bus_id.ends_with(id);
}

/// Leaves the GPUs that are named. False, with the name, for one that isn't there.
bool choose(std::vector<ListedGpu>& gpus, const std::string& ids, std::string& missing) {
    if (ids.empty())
        return true;
    std::set<unsigned> chosen;
    for (const std::string& id : parts_of(ids)) {
        const size_t before = chosen.size();
        bool found = false;
        for (const ListedGpu& gpu : gpus) {
            if (id != std::to_string(gpu.index) && id != uuid_of(gpu) && !is_bus_id(bus_id_of(gpu), id))
                continue;
            chosen.insert(gpu.index);
            found = true;
        }
        if (found || chosen.size() != before)
            continue;
        missing = id;
        return false;
    }
    std::erase_if(gpus, [&](const ListedGpu& gpu) { return chosen.count(gpu.index) == 0; });
    return true;
}

int print_list(const std::vector<ListedGpu>& gpus) {
    for (const ListedGpu& gpu : gpus)
        std::printf("GPU %u: %s (UUID: %s)\n", gpu.index, name_of(gpu).c_str(), uuid_of(gpu).c_str());
    return 0;
}

int answer(const Question& question, const std::vector<ListedGpu>& gpus) {
    std::vector<App> apps;
    for (const ListedGpu& gpu : gpus)
        for (const App& app : apps_of(gpu))
            apps.push_back(app);
    switch (question.kind) {
        case Question::Kind::list:
            return print_list(gpus);
        case Question::Kind::gpus:
            return print_query(gpu_fields(), gpus, question);
        case Question::Kind::apps:
            return print_query(app_fields(), apps, question);
        default:
            std::fputs(table_of(gpus, apps).c_str(), stdout);
            return 0;
    }
}

int run(int count, char** words) {
    Question question;
    std::string error;
    if (!read_words(count, words, question, error))
        return refuse(error);
    switch (question.kind) {
        case Question::Kind::help:
            std::fputs(kHelp, stdout);
            return 0;
        case Question::Kind::help_gpus:
            return print_fields(gpu_fields());
        case Question::Kind::help_apps:
            return print_fields(app_fields());
        default:
            break;
    }
    if (const nvmlReturn_t started = nvmlInit_v2(); started != NVML_SUCCESS) {
        std::printf("nvidia-smi of cuslice: NVML did not start: %s\n", nvmlErrorString(started));
        return kNoDriver;
    }
    std::vector<ListedGpu> gpus = all_gpus();
    std::string missing;
    int code = kNotFound;
    if (gpus.empty())
        std::puts("No devices were found");
    else if (!choose(gpus, question.ids, missing))
        std::printf("No GPU is called %s\n", missing.c_str());
    else
        code = answer(question, gpus);
    nvmlShutdown();
    return code;
}

}  // namespace
}  // namespace cuslice::fake

int main(int count, char** words) { return cuslice::fake::run(count, words); }
