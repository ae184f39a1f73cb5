// SPDX-License-Identifier: Apache-2.0
// A shared runtime that doesn't exist (99): its functions tell whether each argument has arrived.
#pragma GCC visibility push(default)
struct Large {
    long values[5];
};

long cudaMany(int a, long b, const char* c, long d, unsigned e, short f, double g, float h, double i, double j,
              double k, double l, double m, double n, struct Large large, int last) {
    const int whole = a == 1 && b == 2 && c[0] == '3' && d == 4 && e == 5 && f == 6;
    const int real = g == 7 && h == 8 && i == 9 && j == 10 && k == 11 && l == 12 && m == 13 && n == 14;
    return whole && real && large.values[4] == 15 && last == 16 ? 1616 : 0;
}

struct Large cudaLarge(long value) {
    return (struct Large){{1, 2, 3, 4, value}};
}

// Without such a name no table of symbols is copied.
long libcudart_static_test(void) { return 0; }
