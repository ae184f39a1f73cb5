// SPDX-License-Identifier: Apache-2.0
// Another guest on the GPU of a scene, and what they hand each other.
#pragma once

#include "tests/preload/scene.h"

namespace cuslice::tests {

/// Under a slice of its own.
struct Neighbour {
    explicit Neighbour(Scene& scene, const std::string& limit = "1024MiB", const Words& settings = {})
        : scene_(scene),
          guest(Guest::route("linked"), sliced(scene.fake, scene.books.path(), Scene::with(settings, limit))) {
        retain_device(guest);
    }
    Held held() { return books_of(scene_.books.path(), guest.pid()); }
    uint64_t free() { return guest.number("info"); }

    Scene& scene_;
    Guest guest;
};

inline std::string second_word(const std::string& text) { return split_words(text).at(1); }

}  // namespace cuslice::tests
