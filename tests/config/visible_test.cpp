// SPDX-License-Identifier: Apache-2.0
// GPUs that a program sees: CUDA's own list, the stricter key `gpus`, and how they compose, against a model that says
// the same in the simplest way.
#include "config/visible.h"

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "tests/catch.h"

namespace cuslice {
namespace {

using Texts = std::vector<std::string>;

std::vector<GpuIdentity> machine(int count) {
    const GpuIdentity all[] = {{0, "GPU-10aa", "0000:01:00.0"},
                               {1, "GPU-10ab", "0000:02:00.0"},
                               {2, "GPU-20aa", "0000:81:00.0"},
                               {3, "GPU-30aa", "0001:81:00.0"}};
    return {all, all + count};
}

std::string text_of(const GpuPlaces& places) {
    std::string text;
    for (const uint8_t place : places.view())
        text += std::to_string(place);
    return text;
}

std::string cuda(const char* variable) {
    const auto gpus = machine(4);
    return text_of(read_cuda_list(variable ? std::string_view(variable) : std::string_view(), gpus));
}

std::string count_in(const std::string& chosen, const char* variable) {
    VisibleText list;
    const bool changes = count_in_chosen(chosen, variable ? std::string_view(variable) : std::string_view(), list);
    return changes ? std::string(list.view()) : "as it is";
}

// "32", or the line that refuses.
std::string resolve(const std::string& value, const char* variable = nullptr) {
    Reason why;
    if (!parse_gpus(value, why))
        return std::string(why.view());
    const auto gpus = machine(4);
    GpusQuestion question{"--gpus", value, gpus, {}, variable ? std::string_view(variable) : std::string_view()};
    question.allowed = read_cuda_list(question.variable, gpus);
    GpuPlaces chosen;
    ConfigError error;
    return resolve_gpus(question, chosen, error) ? text_of(chosen) : std::string(line_of(error).view());
}

}  // namespace

TEST_CASE("CUDA's list: its end, its order, its numbers and its duplicates") {
    CHECK(cuda(nullptr) == "0123");
    CHECK(cuda("") == "");
    CHECK(cuda("3,1") == "31");
    CHECK(cuda("0,2,-1,1") == "02");
    CHECK(cuda("0,2,4,1") == "02");
    CHECK(cuda("0,1,2,1") == "");
    CHECK(cuda("1gpu2,2ampere") == "12");
    CHECK(cuda(" 1 , 2 ") == "12");
    CHECK(cuda("1 2") == "1");
    CHECK(cuda("+1,\t2") == "12");
    CHECK(cuda("gpu1,2") == "");
    CHECK(cuda("NoDevFiles") == "");
    CHECK(cuda("-1") == "");
    CHECK(cuda("99999999999999999999,0") == "");
    CHECK(cuda("0,") == "0");
    CHECK(cuda(",0") == "");
    CHECK(cuda("GPU-30aa,GPU-2") == "32");
    CHECK(cuda("GPU-30AA,GPU-10Aa") == "30");
    CHECK(cuda("gpu-30aa") == "");
    CHECK(cuda("GPU-10aa,GPU-10aa") == "");
    CHECK(cuda("GPU-10a,GPU-30aa") == "");  // two begin so
    CHECK(cuda("GPU-30aa,GPU-77,GPU-20aa") == "3");
    CHECK(cuda("0,GPU-20aa") == "0");
    CHECK(cuda("GPU-20aa,0") == "2");
    CHECK(cuda("MIG-20aa") == "");
}

TEST_CASE("a program's own indices count in the list that was chosen for it") {
    const std::string chosen = "GPU-30aa,GPU-20aa";
    CHECK(count_in(chosen, "0") == "GPU-30aa");
    CHECK(count_in(chosen, "1,0") == "GPU-20aa,GPU-30aa");
    CHECK(count_in(chosen, "1,2,0") == "GPU-20aa");
    CHECK(count_in(chosen, "2") == "");
    CHECK(count_in(chosen, "0,0") == "");
    CHECK(count_in(chosen, "0,GPU-10aa") == "GPU-30aa");
    CHECK(count_in(chosen, nullptr) == chosen);
    CHECK(count_in("", nullptr) == "");
    CHECK(count_in("", "0") == "");
    for (const char* same : {"", "-1", "NoDevFiles", "GPU-10aa", "GPU-30aa,GPU-20aa", "MIG-1", "x,0"})
        CHECK(count_in(chosen, same) == "as it is");
}

TEST_CASE("with virtual GPUs the program's own list is what was set since the physical ones were chosen") {
    const auto own = [](const char* chosen, const char* variable) {
        const auto view = [](const char* text) { return text ? std::string_view(text) : std::string_view(); };
        const std::string_view list = own_list(view(chosen), view(variable));
        return list.data() ? std::string(list) : "unset";
    };
    CHECK(own(nullptr, nullptr) == "unset");
    CHECK(own(nullptr, "1") == "1");
    CHECK(own(nullptr, "") == "");
    CHECK(own("GPU-30aa", nullptr) == "unset");
    CHECK(own("GPU-30aa", "1") == "1");
    CHECK(own("GPU-30aa", "") == "");
    CHECK(own("GPU-30aa", "GPU-30aa") == "unset");
    CHECK(own("", "") == "unset");
}

TEST_CASE("gpus names each GPU once, by index, UUID or PCI id, and keeps the order") {
    CHECK(resolve("3,2") == "32");
    CHECK(resolve("") == "");
    CHECK(resolve("GPU-30,0,02:00.0") == "301");
    CHECK(resolve("gpu-30AA") == "3");
    const std::string form =
        " names no GPU: use its index (0, or 0-2 for three), the start of its UUID (GPU-5f) or its PCI id "
        "(0000:81:00.0), divided by commas; or any for one that has room, all, or none";
    for (const char* wrong : {"x", "*", "-1", "01", "1.5", " 1", "1 ", "GPU-", "any2", "0x1"})
        CHECK(resolve(wrong) == "'" + std::string(wrong) + "'" + form);
    CHECK(resolve("0,") == "''" + form);
    CHECK(resolve("0,any") == "'any'" + form);
    CHECK(resolve("2,1,2") == "'2' is there twice; name each GPU once");
    CHECK(resolve("0001:81:00.0,00000001:81:00.0") == "'00000001:81:00.0' is there twice; name each GPU once");
    const std::string all = "0 GPU-10aa, 1 GPU-10ab, 2 GPU-20aa, 3 GPU-30aa";
    CHECK(resolve("3,GPU-30") ==
          "cuslice: --gpus: 3,GPU-30: 'GPU-30' and '3' are the same GPU GPU-30aa; name each GPU once");
    CHECK(resolve("1,4") == "cuslice: --gpus: 1,4: '4' names no GPU that is here; there are 4 GPUs: " + all);
    CHECK(resolve("GPU-10") ==
          "cuslice: --gpus: GPU-10: 'GPU-10' names 2 GPUs; write more of its UUID: 0 GPU-10aa, "
          "1 GPU-10ab");
    CHECK(resolve("MIG-10aa") ==
          "cuslice: --gpus: MIG-10aa: 'MIG-10aa' names no GPU that is here; there are 4 GPUs: " + all);
    std::string many = "0";
    for (int i = 1; i <= 64; ++i)
        many += "," + std::to_string(i);
    CHECK(resolve(many) == "at most 64 GPUs");
}

TEST_CASE("gpus takes ranges of indices, all that are visible, and none") {
    CHECK(resolve("0-2") == "012");
    CHECK(resolve("3,0-1") == "301");
    CHECK(resolve("2-2") == "2");
    CHECK(resolve("0-1,GPU-30") == "013");
    CHECK(resolve("all") == "0123");
    CHECK(resolve("all", "3,1") == "31");
    CHECK(resolve("none") == "");
    for (const char* wrong : {"2-0", "0-", "0-GPU-30", "0-1-2", "00-2", "0:2", "all,1", "none,1", "All"}) {
        INFO(wrong);
        CHECK(resolve(wrong).find("names no GPU: use its index") != std::string::npos);
    }
    CHECK(resolve("0-2,1") == "'1' is there twice; name each GPU once");
    CHECK(resolve("1-2,0-1") == "'1' is there twice; name each GPU once");
    CHECK(resolve("0-3,GPU-30") ==
          "cuslice: --gpus: 0-3,GPU-30: 'GPU-30' and '0-3' are the same GPU GPU-30aa; name each GPU once");
    CHECK(resolve("2-5").find("'4' names no GPU that is here; there are 4 GPUs") != std::string::npos);
    CHECK(resolve("0-2", "0,1").find("'2' is not among the GPUs that are left to choose from") != std::string::npos);
    CHECK(resolve("0-63").find("'4' names no GPU that is here") != std::string::npos);
    CHECK(resolve("0-64") == "at most 64 GPUs");
}

TEST_CASE("gpus stays within what CUDA_VISIBLE_DEVICES leaves") {
    CHECK(resolve("3,2", "2,3") == "32");
    CHECK(resolve("3,2", "GPU-30aa,GPU-20aa") == "32");
    CHECK(resolve("", "2,3") == "");
    CHECK(resolve("2,0", "3,2") ==
          "cuslice: --gpus: 2,0: '0' is not among the GPUs that are left to choose from: "
          "CUDA_VISIBLE_DEVICES=3,2 allows 3 GPU-30aa, 2 GPU-20aa");
    CHECK(resolve("0", "") ==
          "cuslice: --gpus: 0: '0' is not among the GPUs that are left to choose from: "
          "CUDA_VISIBLE_DEVICES=\"\" allows none");
}

namespace {

// The model: lists of words, no rules of reading beyond the ones written here.
Texts words_of(const std::string& list) {
    Texts words;
    std::string word;
    for (const char c : list + ",") {
        if (c == ',') {
            words.push_back(word);
            word.clear();
        } else {
            word += c;
        }
    }
    return words;
}

bool is_uuid(const std::string& word) { return word.compare(0, 4, "GPU-") == 0; }

std::optional<int> find_word(const std::string& word, const Texts& uuids) {
    std::optional<int> found;
    for (int i = 0; i < static_cast<int>(uuids.size()); ++i) {
        const bool fits = is_uuid(word) ? uuids[static_cast<size_t>(i)].compare(0, word.size(), word) == 0
                                        : word == std::to_string(i);
        if (!fits)
            continue;
        if (found)
            return std::nullopt;
        found = i;
    }
    return found;
}

Texts model_cuda(const std::optional<std::string>& variable, const Texts& uuids) {
    if (!variable)
        return uuids;
    Texts seen;
    const Texts words = words_of(*variable);
    for (const std::string& word : words) {
        const auto place = is_uuid(word) == is_uuid(words[0]) ? find_word(word, uuids) : std::nullopt;
        if (!place)
            break;
        const std::string& uuid = uuids[static_cast<size_t>(*place)];
        if (std::find(seen.begin(), seen.end(), uuid) != seen.end())
            return {};
        seen.push_back(uuid);
    }
    return seen;
}

std::optional<Texts> model_gpus(const std::string& value, const Texts& uuids, const Texts& allowed) {
    Texts chosen;
    if (value.empty())
        return chosen;
    for (const std::string& word : words_of(value)) {
        const auto place = find_word(word, uuids);
        if (!place)
            return std::nullopt;
        const std::string& uuid = uuids[static_cast<size_t>(*place)];
        if (std::find(allowed.begin(), allowed.end(), uuid) == allowed.end())
            return std::nullopt;
        if (std::find(chosen.begin(), chosen.end(), uuid) != chosen.end())
            return std::nullopt;
        chosen.push_back(uuid);
    }
    return chosen;
}

// GPUs that the program sees in the end: its own list counts in the chosen one, unless it has none or names UUIDs.
Texts model_seen(const Texts& chosen, const std::optional<std::string>& own, const Texts& uuids) {
    const bool names = own && (own->empty() || is_uuid(*own));
    return names ? model_cuda(own, uuids) : model_cuda(own, chosen);
}

std::string join(const Texts& texts) {
    std::string list;
    for (const std::string& text : texts)
        list += (list.empty() ? "" : ",") + text;
    return list;
}

Texts uuids_at(const GpuPlaces& places, const std::vector<GpuIdentity>& gpus) {
    Texts uuids;
    for (const uint8_t place : places.view())
        uuids.emplace_back(gpus[place].uuid);
    return uuids;
}

// Every list of up to `most` words.
Texts lists_of(const Texts& words, int most) {
    Texts all{""}, last{""};
    for (int length = 1; length <= most; ++length) {
        Texts next;
        for (const std::string& list : last)
            for (const std::string& word : words)
                next.push_back(length == 1 ? word : list + "," + word);
        all.insert(all.end(), next.begin(), next.end());
        last = next;
    }
    return all;
}

std::string_view view_of(const std::optional<std::string>& text) {
    return text ? std::string_view(*text) : std::string_view();
}

// One combination, by the code; nothing if it refuses.
std::optional<Texts> seen_by_code(const std::vector<GpuIdentity>& gpus, const std::optional<std::string>& outer,
                                  const std::string& value, const std::optional<std::string>& own) {
    Reason why;
    if (!parse_gpus(value, why))
        return std::nullopt;
    GpusQuestion question{"--gpus", value, gpus, read_cuda_list(view_of(outer), gpus), view_of(outer)};
    GpuPlaces chosen;
    ConfigError error;
    if (!resolve_gpus(question, chosen, error))
        return std::nullopt;
    std::optional<std::string> now = own;
    VisibleText list;
    if (count_in_chosen(join(uuids_at(chosen, gpus)), view_of(own), list))
        now = std::string(list.view());
    return uuids_at(read_cuda_list(view_of(now), gpus), gpus);
}

}  // namespace

TEST_CASE("outer list, gpus and the program's own list compose as in the model", "[fuzz]") {
    unsigned combinations = 0, refused = 0;
    for (int count = 2; count <= 4; ++count) {
        const auto gpus = machine(count);
        Texts uuids;
        for (const GpuIdentity& gpu : gpus)
            uuids.emplace_back(gpu.uuid);
        const Texts words{"0", "1", std::to_string(count - 1), std::to_string(count), "GPU-10ab", "GPU-10"};
        std::vector<std::optional<std::string>> outer{std::nullopt}, own{std::nullopt};
        for (const std::string& list : lists_of(words, 2))
            outer.emplace_back(list);
        for (const std::string& list : lists_of(words, 2))
            own.emplace_back(list);
        for (const auto& around : outer)
            for (const std::string& value : lists_of(words, 2))
                for (const auto& inside : own) {
                    const auto chosen = model_gpus(value, uuids, model_cuda(around, uuids));
                    const auto expected = chosen ? std::optional(model_seen(*chosen, inside, uuids)) : std::nullopt;
                    const auto seen = seen_by_code(gpus, around, value, inside);
                    ++combinations;
                    refused += !expected;
                    if (seen == expected)
                        continue;
                    FAIL(count << " GPUs, outer " << view_of(around) << ", gpus " << value << ", own "
                               << view_of(inside) << ": " << (seen ? join(*seen) : "refused"));
                }
    }
    CHECK(combinations > 200'000);
    CHECK(refused > 1000);
    CHECK(combinations - refused > 1000);
}

}  // namespace cuslice
