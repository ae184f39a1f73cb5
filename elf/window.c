// SPDX-License-Identifier: Apache-2.0
#include "elf/window.h"

static bool holds(const struct elf_piece* piece, uint64_t offset, size_t size) {
    const uint64_t within = offset - piece->offset;
    return within < piece->size && size <= piece->size - within;
}

static size_t copy_from(const struct elf_piece* piece, uint64_t offset, char* into, size_t size) {
    const char* const from = piece->bytes + (offset - piece->offset);
    for (size_t i = 0; i < size; i++)
        into[i] = from[i];
    return size;
}

static void fill(struct elf_window* window, struct elf_piece* piece, uint64_t offset) {
    piece->offset = offset;
    piece->size = window->from->read(window->from, offset, piece->bytes, sizeof(piece->bytes));
}

static size_t read_through(struct elf_source* source, uint64_t offset, void* into, size_t size) {
    struct elf_window* const window = (struct elf_window*)source;
    struct elf_piece* const last = &window->last;
    if (holds(&window->head, offset, size))
        return copy_from(&window->head, offset, into, size);
    if (size > sizeof(last->bytes))
        return window->from->read(window->from, offset, into, size);
    if (!holds(last, offset, size))
        fill(window, last, offset);
    return copy_from(last, offset, into, size < last->size ? size : last->size);
}

void elf_open_window(struct elf_window* window, struct elf_source* from) {
    window->source.read = read_through;
    window->from = from;
    window->last.offset = window->last.size = 0;
    fill(window, &window->head, 0);
}

bool elf_read_text(struct elf_source* source, uint64_t offset, char* into, size_t size, size_t* length) {
    enum { at_once = 128 };
    size_t done = 0;
    while (done < size && offset <= UINT64_MAX - size) {
        const size_t wanted = size - done < at_once ? size - done : at_once;
        const size_t got = source->read(source, offset + done, into + done, wanted);
        for (const size_t end = done + got; done < end; done++) {
            *length = done;
            if (!into[done])
                return true;
        }
        if (got < wanted)
            return false;
    }
    return false;
}
