#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Makes the matrices in this folder; every run, on every machine, writes the same bytes.

usage: make_data.py [folder]
"""
import os
import random
import struct
import sys
from fractions import Fraction

GRID = 12  # points per side of the unit square's interior


def write_text(folder, name, lines):
    with open(os.path.join(folder, name), "w", encoding="ascii", newline="\n") as file:
        file.write("\n".join(lines) + "\n")


def write_npy(folder, name, rows, fortran_order):
    shape = (len(rows), len(rows[0]))
    values = [x for column in zip(*rows) for x in column] if fortran_order else [x for row in rows for x in row]
    header = "{'descr': '<f8', 'fortran_order': %s, 'shape': (%d, %d), }" % (fortran_order, *shape)
    header += " " * (-(10 + len(header) + 1) % 64) + "\n"
    with open(os.path.join(folder, name), "wb") as file:
        file.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode("ascii"))
        file.write(struct.pack("<%dd" % len(values), *values))


def laplacian2d(folder):
    """-(u_xx + u_yy) by the five-point stencil with step 1/(GRID + 1) and zero boundary values: lower triangle."""
    scale = (GRID + 1) ** 2
    entries = []
    for column in range(GRID * GRID):
        entries.append((column, column, 4.0 * scale))
        if (column + 1) % GRID != 0:
            entries.append((column + 1, column, -1.0 * scale))
        if column + GRID < GRID * GRID:
            entries.append((column + GRID, column, -1.0 * scale))
    write_text(folder, "laplacian2d.mtx", [
        "%%MatrixMarket matrix coordinate real symmetric",
        "%% five-point Laplacian on a %d x %d grid, lower triangle" % (GRID, GRID),
        "%d %d %d" % (GRID * GRID, GRID * GRID, len(entries)),
    ] + ["%d %d %r" % (i + 1, j + 1, value) for i, j, value in entries])


def vandermonde(folder):
    """Powers 0..19 of 144 equidistant points in (1, 1.5], each correctly rounded."""
    n = GRID * GRID
    points = [1 + Fraction(i + 1, 2 * n) for i in range(n)]
    write_npy(folder, "vandermonde.npy", [[float(x ** j) for j in range(20)] for x in points], False)


def hilbert(folder):
    """1 / (i + j - 1), correctly rounded: lower triangle of a symmetric array, column by column."""
    n = 64
    write_text(folder, "hilbert.mtx", [
        "%%MatrixMarket matrix array real symmetric",
        "% Hilbert matrix, lower triangle",
        "%d %d" % (n, n),
    ] + [repr(1.0 / (i + j + 1)) for j in range(n) for i in range(j, n)])


def decades(folder):
    """Random signs, magnitudes spread evenly over 12 decades: 1e-6 to 1e6."""
    source = random.Random(20240229)
    rows = []
    for _ in range(64):
        row = []
        for _ in range(48):
            significand = (1.0 + 9.0 * source.random()) * (1.0 if source.random() < 0.5 else -1.0)
            row.append(significand * float(10 ** int(12.0 * source.random())) / 1e6)
        rows.append(row)
    write_npy(folder, "decades.npy", rows, True)


def incidence(folder):
    """Edges of the GRID x GRID grid against its points: -1 at the start, 1 at the end (the discrete gradient)."""
    edges = []
    for point in range(GRID * GRID):
        if (point + 1) % GRID != 0:
            edges.append((point, point + 1))
        if point + GRID < GRID * GRID:
            edges.append((point, point + GRID))
    lines = []
    for edge, (start, end) in enumerate(edges):
        lines += ["%d %d -1" % (edge + 1, start + 1), "%d %d 1" % (edge + 1, end + 1)]
    write_text(folder, "incidence.mtx", [
        "%%MatrixMarket matrix coordinate integer general",
        "%% edge-point incidence of a %d x %d grid" % (GRID, GRID),
        "%d %d %d" % (len(edges), GRID * GRID, len(lines)),
    ] + lines)


def main():
    folder = sys.argv[1] if len(sys.argv) > 1 else os.path.dirname(os.path.abspath(__file__))
    for make in (laplacian2d, vandermonde, hilbert, decades, incidence):
        make(folder)


if __name__ == "__main__":
    main()
