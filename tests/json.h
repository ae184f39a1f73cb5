// SPDX-License-Identifier: Apache-2.0
// JSON as tests read it. A plain class, as nlohmann's templates cost each test that compares with them seconds of
// compiling.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <ostream>
#include <string>
#include <string_view>
#include <utility>

namespace cuslice::tests {

/// A JSON value that can be read, or a part of one. Copies are cheap. A member or an element that isn't there, and a
/// value of another type than the one asked for, throw std::exception, which fails the test.
class Json {
  public:
    static Json parse(std::string_view text);

    Json at(std::string_view key) const;
    Json operator[](const char* key) const { return at(key); }
    template <std::integral Index>
    Json at(Index index) const {
        return element(static_cast<size_t>(index));
    }
    template <std::integral Index>
    Json operator[](Index index) const {
        return element(static_cast<size_t>(index));
    }
    /// The member; where there is none, an empty list.
    Json list(std::string_view key) const;

    /// Number of elements or members; 1 for a plain value, 0 for null.
    size_t size() const;
    bool empty() const { return size() == 0; }
    bool is_null() const;
    bool is_number() const;

    std::string text() const;
    double real() const;
    template <std::integral Number>
    Number get() const {
        return static_cast<Number>(integer());
    }
    operator std::string() const { return text(); }
    operator uint64_t() const { return get<uint64_t>(); }

    friend bool operator==(const Json& json, std::string_view text) { return json.is(text); }
    friend bool operator==(const Json& json, const char* text) { return json.is(std::string_view(text)); }
    friend bool operator==(const Json& json, const std::string& text) { return json.is(std::string_view(text)); }
    friend bool operator==(const Json& json, const Json& other) { return json.same(other); }
    template <std::integral Number>
    friend bool operator==(const Json& json, Number number) {
        if constexpr (std::same_as<Number, bool>)
            return json.is(number);
        return json.equals(static_cast<int64_t>(number));
    }
    template <std::integral Number>
    friend bool operator<(const Json& json, Number number) {
        return json.real() < static_cast<double>(number);
    }
    /// As it would be written.
    friend std::ostream& operator<<(std::ostream& out, const Json& json) { return out << json.written(); }
    std::string written() const;

    class Iterator {
      public:
        Iterator(const Json& list, size_t index) : list_(&list), index_(index) {}
        Json operator*() const { return list_->element(index_); }
        Iterator& operator++() {
            ++index_;
            return *this;
        }
        bool operator!=(const Iterator& other) const { return index_ != other.index_; }

      private:
        const Json* list_;
        size_t index_;
    };
    /// Iterators over the elements of a list.
    Iterator begin() const { return {*this, 0}; }
    Iterator end() const { return {*this, size()}; }

  private:
    struct Value;
    Json(std::shared_ptr<const Value> whole, const void* part) : whole_(std::move(whole)), part_(part) {}
    Json element(size_t index) const;
    int64_t integer() const;
    bool is(std::string_view text) const;
    bool is(bool truth) const;
    bool equals(int64_t number) const;
    bool same(const Json& other) const;

    std::shared_ptr<const Value> whole_;
    const void* part_;
};

}  // namespace cuslice::tests
