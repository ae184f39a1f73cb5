// SPDX-License-Identifier: Apache-2.0
#include "config/visible.h"

#include "config/refuse.h"

namespace cuslice {
namespace {

constexpr int kNothing = -1;

bool is_space(char character) { return character == ' ' || (character >= '\t' && character <= '\r'); }

std::string_view trim(std::string_view text) {
    while (!text.empty() && is_space(text[0]))
        text = slice(text, 1);
    while (!text.empty() && is_space(text[text.size() - 1]))
        text = slice(text, 0, text.size() - 1);
    return text;
}

// The items of a list, one by one. An empty list has one, which is empty, as CUDA and people have it.
class Items {
  public:
    explicit Items(std::string_view list) : rest_(list) {}

    bool next(std::string_view& item) {
        if (done_)
            return false;
        const size_t comma = rest_.find(',');
        item = slice(rest_, 0, comma);
        done_ = comma == rest_.npos;
        rest_ = done_ ? std::string_view() : slice(rest_, comma + 1);
        return true;
    }

  private:
    std::string_view rest_;
    bool done_ = false;
};

// "0-2". False for anything else, also for a range that runs backwards.
bool parse_range(std::string_view item, int& first, int& last) {
    const size_t dash = item.find('-');
    GpuSelector from, to;
    Reason unused;
    if (dash == item.npos || !parse_gpu_selector(slice(item, 0, dash), from, unused) ||
        !parse_gpu_selector(slice(item, dash + 1), to, unused))
        return false;
    if (from.kind != GpuSelector::Kind::index || to.kind != GpuSelector::Kind::index)
        return false;
    first = from.index;
    last = to.index;
    return first <= last;
}

// The names in a list of GPUs: its items, and of a range each index.
class Names {
  public:
    explicit Names(std::string_view list) : items_(list) {}

    // `name` holds until the next call.
    bool next(std::string_view& name) {
        if (next_ > last_) {
            if (!items_.next(item_))
                return false;
            name = item_;
            if (!parse_range(item_, next_, last_)) {
                next_ = 1;
                last_ = 0;
                return true;
            }
        }
        number_.clear();
        name = number_.append(next_++).view();
        return true;
    }
    // The list's item that the name comes from, which may be a range.
    std::string_view item() const { return item_; }

  private:
    Items items_;
    std::string_view item_;
    FixedText<16> number_;
    int next_ = 1;
    int last_ = 0;
};

bool is_name(std::string_view item) { return starts_with(item, "GPU-") || starts_with(item, "MIG-"); }

// As strtoul reads it: digits as far as they go, whatever follows.
int index_of(std::string_view item) {
    const bool negative = starts_with(item, "-");
    if (negative || starts_with(item, "+"))
        item = slice(item, 1);
    if (item.empty() || !is_digit(item[0]))
        return kNothing;
    constexpr int kTooLarge = 1'000'000;
    int index = 0;
    for (const char digit : item) {
        if (!is_digit(digit))
            break;
        if (index < kTooLarge)
            index = index * 10 + (digit - '0');
    }
    return negative && index != 0 ? kNothing : index;
}

// `place_of` gives the place of an item, or kNothing.
template <typename PlaceOf>
GpuPlaces read_list(std::string_view variable, PlaceOf place_of, bool* twice = nullptr) {
    GpuPlaces places;
    const bool names = is_name(trim(variable));
    Items items(variable);
    for (std::string_view item; items.next(item);) {
        item = trim(item);
        const int place = is_name(item) == names ? place_of(item) : kNothing;
        if (place == kNothing)
            break;
        if (places.add(static_cast<size_t>(place)))
            continue;
        places.clear();
        if (twice)
            *twice = true;
        break;
    }
    return places;
}

// True if the name is the UUID or its beginning. As the driver has it, the number's letters may be capitals.
bool begins(std::string_view uuid, std::string_view name) {
    constexpr size_t kind = 4;  // GPU- or MIG-
    if (name.size() > uuid.size() || !starts_with(uuid, slice(name, 0, kind)))
        return false;
    for (size_t i = kind; i < name.size(); i++)
        if (to_lower(uuid[i]) != to_lower(name[i]))
            return false;
    return true;
}

int place_by_name(std::string_view name, std::span<const GpuIdentity> gpus) {
    int found = kNothing;
    for (size_t i = 0; i < gpus.size(); ++i) {
        if (!begins(gpus[i].uuid, name))
            continue;
        if (found != kNothing)
            return kNothing;
        found = static_cast<int>(i);
    }
    return found;
}

int place_of(std::string_view item, std::span<const GpuIdentity> gpus) {
    if (is_name(item))
        return place_by_name(item, gpus);
    const int index = index_of(item);
    return index < static_cast<int>(gpus.size()) ? index : kNothing;
}

// "CUDA_VISIBLE_DEVICES=0,1 allows 0 GPU-…, 1 GPU-…". A list of UUIDs would only say the same twice.
void append_allowed(const GpusQuestion& question, Reason& why) {
    why.append(kCudaVisible);
    if (!is_name(trim(question.variable)) || question.allowed.view().empty())
        why.append("=", question.variable.empty() ? "\"\"" : slice(question.variable, 0, 120));
    why.append(" allows ");
    const char* separator = "";
    for (const uint8_t place : question.allowed.view()) {
        append_gpu(question.gpus[place], separator, why);
        separator = ", ";
    }
    if (question.allowed.view().empty())
        why.append("none");
}

bool allows(const GpuPlaces& places, size_t place) {
    for (const uint8_t one : places.view()) {
        if (one == place)
            return true;
    }
    return false;
}

bool refuse(const GpusQuestion& question, const Reason& why, ConfigError& error) {
    return error.set(question.origin, question.value, why);
}

// The place that one name stands for.
bool find_one(const GpusQuestion& question, std::string_view name, size_t& place, ConfigError& error) {
    Reason why;
    GpuSelector selector;
    if (!parse_gpu_selector(name, selector, why))
        return refuse(question, why, error);
    int matches = 0;
    for (size_t i = 0; i < question.gpus.size(); ++i) {
        if (!selector.matches(question.gpus[i]))
            continue;
        place = i;
        ++matches;
    }
    if (matches != 1) {
        explain_matches(selector, question.gpus, matches, why);
        return refuse(question, why, error);
    }
    if (allows(question.allowed, place))
        return true;
    why.assign("'", name, "' is not among the GPUs that are left to choose from: ");
    append_allowed(question, why);
    return refuse(question, why, error);
}

}  // namespace

bool GpuPlaces::add(size_t place) {
    if (count_ == kMax || allows(*this, place))
        return false;
    places_[count_++] = static_cast<uint8_t>(place);
    return true;
}

void append_visible(VisibleText& list, std::string_view uuid) {
    if (!list.empty())
        list.append(",");
    list.append(uuid);
}

GpuPlaces read_cuda_list(std::string_view variable, std::span<const GpuIdentity> gpus) {
    if (variable.data() == nullptr) {
        GpuPlaces all;
        for (size_t i = 0; i < gpus.size(); ++i)
            all.add(i);
        return all;
    }
    return read_list(variable, [&](std::string_view item) { return place_of(item, gpus); });
}

bool names_gpu_twice(std::string_view variable, std::span<const GpuIdentity> gpus) {
    bool twice = false;
    if (variable.data() != nullptr)
        read_list(
            variable, [&](std::string_view item) { return place_of(item, gpus); }, &twice);
    return twice;
}

bool counts_gpus(std::string_view variable) {
    return index_of(trim(slice(variable, 0, variable.find(',')))) != kNothing;
}

bool count_in_chosen(std::string_view chosen, std::string_view variable, VisibleText& list) {
    list.clear();
    if (variable.data() == nullptr) {
        list.append(chosen);
        return true;
    }
    if (!counts_gpus(variable))
        return false;
    std::string_view uuids[GpuPlaces::kMax];
    int count = 0;
    Items items(chosen);
    for (std::string_view item; items.next(item) && count < static_cast<int>(GpuPlaces::kMax);)
        if (!item.empty())
            uuids[count++] = item;
    const GpuPlaces places = read_list(variable, [&](std::string_view item) {
        const int index = index_of(item);
        return index < count ? index : kNothing;
    });
    for (const uint8_t place : places.view())
        append_visible(list, uuids[place]);
    return true;
}

std::string_view own_list(std::string_view chosen, std::string_view variable) {
    return chosen.data() != nullptr && variable == chosen ? std::string_view() : variable;
}

bool parse_gpus(std::string_view text, Reason& why) {
    if (names_no_gpu(text) || text == kAnyGpu || text == kAllGpus)
        return true;
    GpuSelector selectors[GpuPlaces::kMax];
    size_t count = 0;
    Names names(text);
    for (std::string_view item; names.next(item);) {
        if (count == GpuPlaces::kMax)
            return refuse("at most 64 GPUs", why);
        GpuSelector& selector = selectors[count];
        if (!parse_gpu_selector(item, selector, why) || selector.is_general()) {
            why.assign("'", slice(item, 0, 64),
                       "' names no GPU: use its index (0, or 0-2 for three), the start of its UUID (GPU-5f) ");
            why.append("or its PCI id (0000:81:00.0), divided by commas; or any for one that has room, all, or none");
            return false;
        }
        for (size_t i = 0; i < count; ++i) {
            if (!selectors[i].same_as(selector))
                continue;
            why.assign("'", item, "' is there twice; name each GPU once");
            return false;
        }
        ++count;
    }
    return true;
}

bool resolve_gpus(const GpusQuestion& question, GpuPlaces& chosen, ConfigError& error) {
    chosen.clear();
    if (names_no_gpu(question.value))
        return true;
    if (question.value == kAllGpus) {
        chosen = question.allowed;
        return true;
    }
    std::string_view names[GpuPlaces::kMax];
    Names list(question.value);
    for (std::string_view name; list.next(name);) {
        size_t place = 0;
        if (!find_one(question, name, place, error))
            return false;
        const std::string_view item = list.item();
        const size_t count = chosen.view().size();
        if (chosen.add(place)) {
            names[count] = item;
            continue;
        }
        Reason why;
        why.assign("'", item);
        for (size_t i = 0; i < count; ++i)
            if (chosen.view()[i] == place)
                why.append("' and '", names[i]);
        why.append("' are the same GPU ", question.gpus[place].uuid, "; name each GPU once");
        return refuse(question, why, error);
    }
    for (const uint8_t place : chosen.view()) {
        if (chosen.view().size() == 1 || !is_mig_uuid(question.gpus[place].uuid))
            continue;
        Reason why;
        why.assign("CUDA shows a program one MIG instance and nothing beside it: name ", names[0]);
        return refuse(question, why.append(" or another one alone"), error);
    }
    return true;
}

bool refuse_any(const GpusQuestion& question, ConfigError& error) {
    Reason why;
    why.assign("there is no GPU to choose from");
    if (question.variable.data() != nullptr)
        append_allowed(question, why.append(": "));
    return refuse(question, why, error);
}

}  // namespace cuslice
