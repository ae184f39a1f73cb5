// Memory that several processes hold: who they are, and which of them pays.

#include <algorithm>

#include "fake/books/books.h"
#include "fake/books/file_lock.h"

namespace cuslice::fake {
namespace {

std::atomic<std::uint64_t>& holders_word(SharedPiece& piece, std::uint32_t number) {
    return piece.holders[number / 64];
}
constexpr std::uint64_t holder_bit(std::uint32_t number) { return 1ULL << number % 64; }

/// The first that holds the piece, or books_slots.
std::uint32_t first_holder(const SharedPiece& piece) {
    for (std::uint32_t word = 0; word < books_slots / 64; word++) {
        const std::uint64_t bits = piece.holders[word];
        if (bits != 0) return word * 64 + static_cast<std::uint32_t>(std::countr_zero(bits));
    }
    return books_slots;
}

}  // namespace

SharedPiece* Books::find_piece(std::uint64_t id) const {
    const std::uint32_t high = file_->header.shared_high;
    for (std::uint32_t i = 0; i < high; i++) {
        if (file_->shared[i].id.load() == id) return &file_->shared[i];
    }
    return nullptr;
}

bool Books::new_piece(std::uint64_t id, std::uint64_t bytes, std::uint32_t payer) {
    SharedPiece* piece = std::find_if(file_->shared, file_->shared + books_shared,
                                      [](const SharedPiece& at) { return at.id.load() == 0; });
    if (piece == file_->shared + books_shared) return false;
    for (auto& word : piece->holders) word = 0;
    holders_word(*piece, own_number()) = holder_bit(own_number());
    piece->bytes = bytes;
    piece->payer = payer;
    piece->id = id;  // last: from here on it counts
    const auto number = static_cast<std::uint32_t>(piece - file_->shared);
    file_->header.shared_high = std::max(file_->header.shared_high.load(), number + 1);
    return true;
}

bool Books::share(std::uint64_t id, std::uint64_t bytes) {
    const FileLock lock(lock_file_);
    return new_piece(id, bytes, own_number());
}

bool Books::hold_from_owner(std::uint64_t id) {
    const FileLock lock(lock_file_);
    end_the_dead();
    SharedPiece* piece = find_piece(id);
    if (piece == nullptr || (piece->payer & piece_inherited) != 0) return false;
    holders_word(*piece, own_number()) |= holder_bit(own_number());
    return true;
}

bool Books::hold_or_pay(std::uint64_t id, std::uint64_t bytes) {
    {
        const FileLock lock(lock_file_);
        end_the_dead();
        if (SharedPiece* piece = find_piece(id)) {
            holders_word(*piece, own_number()) |= holder_bit(own_number());
            return true;
        }
    }
    // Everybody who held it is gone, but a descriptor that was under way kept the memory: it is this process's now, if
    // there is room.
    if (!charge(bytes)) return false;
    const FileLock lock(lock_file_);
    const bool made = new_piece(id, bytes, own_number() | piece_inherited);
    release(bytes);
    return made;
}

void Books::drop(std::uint64_t id, bool pass_on) {
    const FileLock lock(lock_file_);
    if (SharedPiece* piece = find_piece(id)) drop_piece(*piece, own_number(), pass_on);
}

void Books::drop_piece(SharedPiece& piece, std::uint32_t number, bool pass_on) {
    holders_word(piece, number) &= ~holder_bit(number);
    if ((piece.payer & ~piece_inherited) != number) return;
    const std::uint32_t heir = pass_on ? first_holder(piece) : books_slots;
    if (heir == books_slots) {
        piece.id = 0;
    } else {
        piece.payer = heir | piece_inherited;
    }
}

void Books::drop_all(std::uint32_t number) {
    const std::uint32_t high = file_->header.shared_high;
    for (std::uint32_t i = 0; i < high; i++) {
        SharedPiece& piece = file_->shared[i];
        if (piece.id.load() != 0 && (holders_word(piece, number) & holder_bit(number)) != 0)
            drop_piece(piece, number, true);
    }
}

std::uint64_t Books::inherited(std::uint32_t number) const {
    std::uint64_t sum = 0;
    const std::uint32_t high = file_->header.shared_high;
    for (std::uint32_t i = 0; i < high; i++) {
        const SharedPiece& piece = file_->shared[i];
        const std::uint32_t payer = piece.payer;
        const bool counts =
            number == books_slots ? (payer & piece_inherited) != 0 : payer == (number | piece_inherited);
        if (piece.id.load() != 0 && counts) sum += piece.bytes;
    }
    return sum;
}

}  // namespace cuslice::fake
