#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""End-to-end test of gemm_files: its products, its reported errors and its messages against exact arithmetic.

usage: test_gemm_files.py <gemm_files> <data folder>
"""
import filecmp
import os
import random
import re
import resource
import struct
import subprocess
import sys
import tempfile
import unittest

SCALE = 1074  # every double times 2^SCALE is an integer

PAIRS = [
    ("laplacian2d.mtx", "vandermonde.npy", []),
    ("hilbert.mtx", "decades.npy", []),
    ("hilbert.mtx", "hilbert.mtx", []),
    ("decades.npy", "decades.npy", ["--trans-a", "T"]),
    ("decades.npy", "hilbert.mtx", ["--trans-a", "T", "--trans-b", "T"]),
    ("incidence.mtx", "vandermonde.npy", []),
    ("incidence.mtx", "incidence.mtx", ["--trans-a", "T"]),
]
EXECUTABLE = DATA = None


def read_matrix(path):
    """Rows of doubles; a reader of its own, for well-formed files."""
    with open(path, "rb") as file:
        content = file.read()
    if content[:6] == b"\x93NUMPY":
        length = struct.unpack("<H", content[8:10])[0]
        header = eval(content[10:10 + length].decode("ascii"), {"__builtins__": {}})
        rows, cols = header["shape"]
        values = struct.unpack("<%dd" % (rows * cols), content[10 + length:])
        if header["fortran_order"]:
            return [[values[i + j * rows] for j in range(cols)] for i in range(rows)]
        return [list(values[i * cols:(i + 1) * cols]) for i in range(rows)]
    lines = content.decode("ascii").splitlines()
    _, _, form, _, symmetry = lines[0].split()
    lines = [line.split() for line in lines[1:] if line and not line.startswith("%")]
    rows, cols = int(lines[0][0]), int(lines[0][1])
    matrix = [[0.0] * cols for _ in range(rows)]
    if form == "coordinate":
        entries = [(int(i) - 1, int(j) - 1, float(v)) for i, j, v in lines[1:]]
    else:
        places = [(i, j) for j in range(cols) for i in range(j if symmetry == "symmetric" else 0, rows)]
        entries = [(i, j, float(line[0])) for (i, j), line in zip(places, lines[1:])]
        assert len(lines) - 1 == len(places)
    for i, j, value in entries:
        matrix[i][j] += value
        if symmetry == "symmetric" and i != j:
            matrix[j][i] += value
    return matrix


def write_npy(path, rows, cols, by_columns, descr="<f8", version=1):
    header = "{'descr': '%s', 'fortran_order': True, 'shape': (%d, %d), }\n" % (descr, rows, cols)
    with open(path, "wb") as file:
        file.write(b"\x93NUMPY" + bytes([version, 0]) + struct.pack("<H", len(header)) + header.encode("ascii"))
        file.write(struct.pack("<%dd" % len(by_columns), *by_columns))


def transposed(matrix):
    return [list(column) for column in zip(*matrix)]


def to_integers(matrix):
    result = []
    for row in matrix:
        pairs = [x.as_integer_ratio() for x in row]
        result.append([n << (SCALE + 1 - d.bit_length()) for n, d in pairs])
    return result


def exact_products(a_rows, b_columns):
    """(exact, absolute) for every entry, as integers in units of 2^(-2 SCALE)."""
    a_rows, b_columns = to_integers(a_rows), to_integers(b_columns)
    return [[(sum(x * y for x, y in zip(a, b) if x and y), sum(abs(x * y) for x, y in zip(a, b) if x and y))
             for b in b_columns] for a in a_rows]


def bits(matrix):
    return [struct.pack("<%dd" % len(row), *row) for row in matrix]


class GemmFilesTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def path(self, name):
        return os.path.join(self.folder.name, name)

    def data(self, name):
        return os.path.join(DATA, name)

    def put(self, name, content):
        with open(self.path(name), "wb") as file:
            file.write(content if isinstance(content, bytes) else content.encode("ascii"))
        return self.path(name)

    def run_tool(self, *arguments, **keywords):
        environment = dict(os.environ)
        environment.setdefault("OMP_WAIT_POLICY", "passive")  # other tests may run on the same cores
        return subprocess.run([EXECUTABLE, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              universal_newlines=True, timeout=240, env=environment, **keywords)

    def succeed(self, *arguments):
        result = self.run_tool(*arguments)
        self.assertEqual(result.returncode, 0, result.stderr)
        return result.stdout

    def fail_with(self, message, *arguments, **keywords):
        """One sentence, exit code 1, and no file more than before."""
        before = sorted(os.listdir(self.folder.name))
        result = self.run_tool(*arguments, **keywords)
        self.assertEqual(result.returncode, 1, result.stdout + result.stderr)
        lines = [line for line in result.stderr.splitlines() if line.startswith("gemm_files: ")]
        self.assertEqual(lines, ["gemm_files: " + message])
        self.assertEqual(sorted(os.listdir(self.folder.name)), before)
        return result

    def product(self, a, b, options, name="c.npy"):
        output = self.succeed(a, b, "-o", self.path(name), *options)
        self.assertIn("written     " + self.path(name) + "\n", output)
        return read_matrix(self.path(name)), output

    def reported(self, output, name):
        """(max, median) as printed."""
        match = re.search(r"^ +%s +(\S+) +(\S+) " % re.escape(name), output, re.MULTILINE)
        self.assertIsNotNone(match, output)
        return float(match.group(1)), float(match.group(2))

    def operands(self, a, b, options):
        a_rows, b_columns = read_matrix(self.data(a)), read_matrix(self.data(b))
        if "--trans-a" in options:
            a_rows = transposed(a_rows)
        if "--trans-b" not in options:
            b_columns = transposed(b_columns)
        return a_rows, b_columns

    def test_products_and_reported_errors_agree_with_exact_arithmetic(self):
        for a, b, options in PAIRS:
            a_rows, b_columns = self.operands(a, b, options)
            exact = exact_products(a_rows, b_columns)
            m, n, k = len(a_rows), len(b_columns), len(a_rows[0])
            for moduli, bound in ((None, "fast"), (14, "accurate"), (20, "fast"), (20, "accurate")):
                with self.subTest(a=a, b=b, options=options, moduli=moduli, bound=bound):
                    extra = ["--bound", bound] + (["--moduli", str(moduli)] if moduli else [])
                    c, output = self.product(self.data(a), self.data(b), options + extra)
                    self.assertEqual((len(c), len(c[0])), (m, n))
                    self.assertIn("product     %d x %d, k = %d\n" % (m, n, k), output)
                    if moduli:
                        self.assertIn("method      %d moduli," % moduli, output)
                    else:
                        self.assertRegex(output, r"\nmethod      (1\d|20) moduli(, \d+ entries exactly)?, chosen from the "
                                                 r"data; proven: error at most %d u \|A\|\|B\|" % k)
                    errors = []
                    for i, row in enumerate(to_integers(c)):
                        for j, entry in enumerate(row):
                            value, absolute = exact[i][j]
                            difference = abs((entry << SCALE) - value)
                            if absolute == 0:
                                self.assertEqual(entry, 0)
                                errors.append(0.0)
                                continue
                            errors.append((difference << 53) / absolute)
                            if moduli is None:
                                # the promise: k u |A||B| before the final rounding
                                self.assertLessEqual((difference << 53) - abs(entry << SCALE), k * absolute)
                            elif moduli == 20:  # nothing but the final rounding
                                self.assertLessEqual(errors[-1], 1.0)
                    largest, median = self.reported(output, "emulated")
                    if "of all %d entries" % (m * n) in output:
                        self.assertEqual("%.3g" % largest, "%.3g" % max(errors))
                        self.assertEqual("%.3g" % median, "%.3g" % sorted(errors)[len(errors) // 2])
                    else:
                        self.assertGreater(m * n, 4096)
                        self.assertIn("of a sample of 1000 entries", output)
                        self.assertLessEqual(largest, max(errors) * 1.001)

    def test_integers_are_multiplied_exactly(self):
        c, output = self.product(self.data("incidence.mtx"), self.data("incidence.mtx"), ["--trans-a", "T"])
        grid = 12
        for p in range(grid * grid):
            for q in range(grid * grid):
                (y, x), (v, w) = divmod(p, grid), divmod(q, grid)
                if p == q:
                    expected = sum(0 <= t < grid for t in (x - 1, x + 1, y - 1, y + 1))
                else:
                    expected = -1 if abs(x - w) + abs(y - v) == 1 else 0
                self.assertEqual(c[p][q], expected)
        self.assertEqual(self.reported(output, "emulated"), (0.0, 0.0))

    def test_report_names_stages_engine_and_workspace(self):
        output = self.succeed(self.data("hilbert.mtx"), self.data("decades.npy"))
        self.assertIn("64 x 64, Matrix Market array real symmetric\n", output)
        self.assertIn("64 x 48, NumPy 1.0 float64, Fortran order\n", output)
        self.assertRegex(output, r"\nengine      [\w-]+\n")
        self.assertGreater(int(re.search(r"\nworkspace   (\d+) bytes\n", output).group(1)), 14 * 64 * 64)
        times = {}
        for stage in ("statistics", "scale", "residues", "multiply", "reduce", "reconstruct", "between", "total"):
            match = re.search(r"^ +%s +([0-9.]+) ms" % stage, output, re.MULTILINE)
            self.assertIsNotNone(match, "%s is missing:\n%s" % (stage, output))
            times[stage] = float(match.group(1))
        self.assertGreater(times["multiply"], 0.0)
        total = times.pop("total")
        stages = sum(float(t) for t in re.findall(r"^ +\w+ +([0-9.]+) ms +[0-9.]+ %$", output, re.MULTILINE))
        self.assertAlmostEqual(stages, 2.0 * total, delta=0.01 + 0.01 * total)  # the stages, and the total itself

    def test_both_output_formats_hold_the_same_bits(self):
        a, b = self.data("hilbert.mtx"), self.data("decades.npy")
        npy, _ = self.product(a, b, [], "c.npy")
        mtx, _ = self.product(a, b, [], "c.mtx")
        self.assertEqual(bits(npy), bits(mtx))
        again, _ = self.product(self.path("c.mtx"), self.path("c.npy"), ["--trans-b", "T"], "d.npy")
        self.assertEqual((len(again), len(again[0])), (64, 64))
        self.assertEqual(sorted(os.listdir(self.folder.name)), ["c.mtx", "c.npy", "d.npy"])

    def test_transposes_give_the_bits_of_the_transposed_file(self):
        hilbert, decades = self.data("hilbert.mtx"), self.data("decades.npy")
        rows = read_matrix(decades)
        write_npy(self.path("t.npy"), 48, 64, [x for row in rows for x in row])
        first, _ = self.product(decades, hilbert, ["--trans-a", "T"])
        second, _ = self.product(self.path("t.npy"), hilbert, [])
        self.assertEqual(bits(first), bits(second))
        third, _ = self.product(hilbert, self.path("t.npy"), ["--trans-b", "T"])
        fourth, _ = self.product(hilbert, decades, [])
        self.assertEqual(bits(third), bits(fourth))
        self.assertNotEqual(bits(first), bits(fourth))

    def sweep_rows(self, output):
        rows = {}
        for line in output.splitlines():
            match = re.match(r" +(\d+|chosen|native|rounded) \|(.*?)\|(.*)$", line)
            if match:
                key = match.group(1)
                rows[int(key) if key.isdigit() else key] = (match.group(2).split(), match.group(3).split())
        return rows

    def test_sweep_falls_to_the_final_rounding(self):
        for a, b, options in PAIRS[:4]:
            with self.subTest(a=a, b=b):
                output = self.succeed(self.data(a), self.data(b), "--sweep", *options)
                rows = self.sweep_rows(output)
                self.assertEqual(set(rows), set(range(2, 21)) | {"chosen", "native", "rounded"})
                self.assertRegex(" ".join(rows["chosen"][1]), r"^\d+ moduli")
                native, rounded = float(rows["native"][0][0]), float(rows["rounded"][0][0])
                final = re.search(r"native FP64 takes (\d+) moduli with the fast bound and (\d+) with the accurate "
                                  r"bound; reaching the final rounding takes (\d+) and (\d+)\.\n$", output)
                self.assertIsNotNone(final, output)
                for column in (0, 1):
                    largest = [float(rows[s][column][0]) for s in range(2, 21)]
                    median = [float(rows[s][column][1]) for s in range(2, 21)]
                    for errors in (largest, median):
                        for t in range(len(errors) - 2):
                            self.assertLessEqual(errors[t + 1], 3.0 * errors[t])
                            self.assertLessEqual(errors[t + 2], 1.01 * errors[t])
                    self.assertGreater(largest[0], 1e10 * largest[-1])
                    self.assertLessEqual(largest[-1], 1.01 * rounded)
                    for group, limit in ((1 + column, native), (3 + column, 1.01 * rounded)):
                        s = int(final.group(group))
                        self.assertLessEqual(largest[s - 2], 1.01 * limit)
                        self.assertGreaterEqual(largest[s - 3], 0.99 * limit)
                for s in range(2, 21):
                    self.assertEqual(len(rows[s][0]), 3)
                    if rows[s][1][3:]:
                        self.assertEqual(rows[s][1][3:], ["fast", "exponents"])
                        self.assertEqual(rows[s][1][:2], rows[s][0][:2])
                # too few bits for the accurate bound's guard
                self.assertEqual(rows[2][1][3:], ["fast", "exponents"])

    def test_sweep_shows_both_choices_of_the_accurate_bound(self):
        rows = self.sweep_rows(self.succeed(self.data("laplacian2d.mtx"), self.data("vandermonde.npy"), "--sweep"))
        self.assertEqual(rows[14][1][3:], [])
        single = self.succeed(self.data("laplacian2d.mtx"), self.data("vandermonde.npy"), "--bound", "accurate")
        self.assertIn(", accurate bound\n", single)
        self.assertEqual("%.3g %.3g" % self.reported(single, "emulated"), " ".join(rows[14][1][:2]))
        single = self.succeed(self.data("laplacian2d.mtx"), self.data("vandermonde.npy"), "--bound", "accurate",
                              "--moduli", "2")
        self.assertIn(", accurate bound (which chose the fast exponents)\n", single)

    def test_too_few_moduli_for_a_long_sum(self):
        k = 2000
        source = random.Random(3)
        write_npy(self.path("row.npy"), 1, k, [source.uniform(-1.0, 1.0) for _ in range(k)])
        output = self.succeed(self.path("row.npy"), self.path("row.npy"), "--trans-b", "T", "--sweep")
        rows = self.sweep_rows(output)
        too_few = "too few moduli for this k".split()
        self.assertEqual(rows[2], (too_few, too_few))
        self.assertEqual(len(rows[3][0]), 3)
        result = self.run_tool(self.path("row.npy"), self.path("row.npy"), "--trans-b", "T", "--moduli", "2", "-o",
                               self.path("c.npy"))
        self.assertEqual(result.returncode, 1)
        self.assertIn("too few moduli for this k", result.stderr.splitlines()[-1])
        self.assertFalse(os.path.exists(self.path("c.npy")))

    def test_non_finite_rows_and_columns_are_reported_and_left_out(self):
        a = self.put("a.mtx", "%%MatrixMarket matrix array real general\n3 2\n1\ninf\n3\n4\n5\n6\n")
        b = self.put("b.mtx", "%%MatrixMarket matrix array real general\n2 2\nnan\n1\n2\n3\n")
        c, output = self.product(a, b, [])
        self.assertIn("of all 2 entries\n", output)
        self.assertIn("1 of 3 rows of op(A) and 1 of 2 columns of op(B) hold Inf or NaN: left out\n", output)
        self.assertEqual(self.reported(output, "emulated"), (0.0, 0.0))
        self.assertEqual((c[0][1], c[1][1], c[2][1]), (14.0, float("inf"), 24.0))
        self.assertTrue(all(row[0] != row[0] for row in c))

    def test_empty_products(self):
        write_npy(self.path("a.npy"), 3, 0, [])
        write_npy(self.path("b.npy"), 0, 2, [])
        c, _ = self.product(self.path("a.npy"), self.path("b.npy"), [], "c.mtx")
        self.assertEqual(c, [[0.0, 0.0]] * 3)
        output = self.succeed(self.path("b.npy"), self.path("b.npy"), "--trans-b", "T", "--sweep")
        self.assertIn("of no entry\n", output)
        self.assertIn("sweep       no entry to measure\n", output)

    def test_bad_files_get_one_sentence_and_leave_no_output(self):
        good, target = self.data("hilbert.mtx"), self.path("c.npy")
        head = "%%MatrixMarket matrix coordinate real general\n"
        with open(self.data("decades.npy"), "rb") as file:
            truncated = self.put("truncated.npy", file.read()[:-1])
        write_npy(self.path("big.npy"), 1, 1, [1.0], descr=">f8")
        cases = [
            (self.put("index.mtx", head + "2 2 1\n3 1 1\n"), "line 3: expected a row index from 1 to 2, got '3'."),
            (self.put("token.mtx", head + "2 2 1\n1 1 one\n"), "line 3: expected a real number, got 'one'."),
            (self.put("short.mtx", head + "2 2 2\n1 1 1\n"),
             "line 3: expected 2 entries, got the end of the file after 1."),
            (self.put("long.mtx", head + "2 2 1\n1 1 1\n2 2 2\n"),
             "line 4: expected the end of the file after 1 entries, got '2 2 2'."),
            (self.put("plain.mtx", "1 2\n3 4\n"),
             "line 1: expected the banner '%%MatrixMarket matrix ...', got '1 2'."),
            (self.put("pattern.mtx", "%%MatrixMarket matrix coordinate pattern general\n1 1 1\n1 1\n"),
             "line 1: expected the field 'real' or 'integer', got 'pattern'."),
            (truncated, "byte 128: expected 24576 bytes of data for a 64 x 48 array, got 24575."),
            (self.path("big.npy"), "byte 20: expected the dtype '<f8', got '>f8'."),
        ]
        for path, message in cases:
            with self.subTest(path=path):
                self.fail_with(path + ", " + message, path, good, "-o", target)
                result = self.fail_with(path + ", " + message, good, path, "-o", target, "--sweep")
                self.assertEqual(result.stdout, "")
                self.assertEqual(len(result.stderr.splitlines()), 1)
        missing = self.path("missing.mtx")
        self.fail_with(missing + ": cannot be opened: No such file or directory.", missing, good, "-o", target)
        huge = self.put("huge.mtx", head + "10000000 10000000 1\n1 1 1\n")
        result = self.run_tool(huge, good, "-o", target)
        self.assertEqual(result.returncode, 1)
        self.assertRegex(result.stderr, "huge.mtx, line 2: a 10000000 x 10000000 matrix as a dense array does not fit "
                                        r"into the \d+ bytes of memory there are\.\n$")

    def test_sizes_that_do_not_fit(self):
        a, b = self.data("hilbert.mtx"), self.data("vandermonde.npy")
        self.fail_with("op(B) has 144 rows, op(A) has 64 columns (%s 64 x 64 N, %s 144 x 20 N)." % (a, b), a, b, "-o",
                       self.path("c.npy"))
        count = 3000000
        write_npy(self.path("v.npy"), count, 1, [0.0] * count)
        result = self.run_tool(self.path("v.npy"), self.path("v.npy"), "--trans-b", "T")
        self.assertEqual(result.returncode, 1)
        self.assertEqual(result.stderr.splitlines()[-1],
                         "gemm_files: The product is 3000000 x 3000000, which does not fit into the memory of this "
                         "machine.")

    def test_a_failed_write_leaves_nothing(self):
        a, b = self.data("hilbert.mtx"), self.data("decades.npy")
        nowhere = self.path("no/such/c.npy")
        self.fail_with(nowhere + ": cannot be written: No such file or directory.", a, b, "-o", nowhere)
        for name in ("c.npy", "c.mtx"):
            target = self.put(name, "older")
            self.fail_with(target + ": cannot be written: File too large.", a, b, "-o", target,
                           preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (10000, 10000)))
            with open(target) as file:
                self.assertEqual(file.read(), "older")

    def test_wrong_usage(self):
        a, b = self.data("hilbert.mtx"), self.data("decades.npy")
        for arguments in ([], [a], [a, b, "extra"], [a, b, "--moduli", "1"], [a, b, "--moduli", "21"],
                          [a, b, "--moduli", "x"], [a, b, "--bound", "loose"], [a, b, "--trans-a", "C"],
                          [a, b, "--trans-b"], [a, b, "--nonsense"], [a, b, "-o", self.path("c.txt")], [a, b, "-o"]):
            with self.subTest(arguments=arguments):
                result = self.run_tool(*arguments)
                self.assertEqual(result.returncode, 1)
                self.assertEqual(result.stdout, "")
                self.assertRegex(result.stderr, r"^gemm_files: [^\n]+\n$")
        self.assertEqual(os.listdir(self.folder.name), [])
        self.assertIn("--sweep", self.succeed("--help"))

    def test_data_is_what_its_script_makes(self):
        subprocess.run([sys.executable, os.path.join(DATA, "make_data.py"), self.folder.name], check=True)
        made = sorted(os.listdir(self.folder.name))
        self.assertEqual(made, sorted(name for name in os.listdir(DATA) if name.endswith((".mtx", ".npy"))))
        self.assertEqual(filecmp.cmpfiles(self.folder.name, DATA, made, shallow=False), (made, [], []))


if __name__ == "__main__":
    EXECUTABLE, DATA = (os.path.abspath(path) for path in sys.argv[1:3])
    unittest.main(argv=sys.argv[:1] + sys.argv[3:], verbosity=2)
