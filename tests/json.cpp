// SPDX-License-Identifier: Apache-2.0
#include "tests/json.h"

#include <nlohmann/json.hpp>

namespace cuslice::tests {
namespace {

const nlohmann::json& seen(const void* part) { return *static_cast<const nlohmann::json*>(part); }

}  // namespace

struct Json::Value {
    nlohmann::json json;
};

Json Json::parse(std::string_view text) {
    auto whole = std::make_shared<const Value>(Value{nlohmann::json::parse(text)});
    const void* part = &whole->json;
    return {std::move(whole), part};
}

Json Json::at(std::string_view key) const { return {whole_, &seen(part_).at(std::string(key))}; }

Json Json::element(size_t index) const { return {whole_, &seen(part_).at(index)}; }

Json Json::list(std::string_view key) const { return seen(part_).contains(std::string(key)) ? at(key) : parse("[]"); }

size_t Json::size() const { return seen(part_).size(); }

bool Json::is_null() const { return seen(part_).is_null(); }

bool Json::is_number() const { return seen(part_).is_number(); }

std::string Json::text() const { return seen(part_).get<std::string>(); }

double Json::real() const { return seen(part_).get<double>(); }

int64_t Json::integer() const { return seen(part_).get<int64_t>(); }

bool Json::is(std::string_view text) const {
    return seen(part_).is_string() && seen(part_).get_ref<const std::string&>() == text;
}

bool Json::is(bool truth) const { return seen(part_) == truth; }

bool Json::equals(int64_t number) const {
    return seen(part_).is_number_integer() && seen(part_).get<int64_t>() == number;
}

bool Json::same(const Json& other) const { return seen(part_) == seen(other.part_); }

std::string Json::written() const { return seen(part_).dump(); }

}  // namespace cuslice::tests
