// Arrays that are written to files, and read back with the readers.
#include "data/files/array_writer.h"

#include <filesystem>
#include <numeric>

#include <doctest/doctest.h>

#include "base/error.h"
#include "data/readers/open_any.h"
#include "support/temp_dir.h"

using namespace dtrain;
using test::TempDir;

namespace {

constexpr int64_t kRows = 7;

/// Returns numbers that cannot be written exactly with a few decimal digits.
std::vector<float> numbers(int64_t count, float first) {
  std::vector<float> values(static_cast<size_t>(count));
  std::iota(values.begin(), values.end(), first);
  for (float& value : values) value /= 3;
  return values;
}

/// Writes in batches of 3, 3 and 1 rows.
void write(const std::string& path, const std::vector<TensorSpec>& arrays,
           std::vector<std::vector<float>>& values) {
  const auto writer = open_array_writer(path, arrays, kRows);
  for (int64_t first = 0; first < kRows; first += 3) {
    std::vector<View> views;
    for (size_t i = 0; i < arrays.size(); ++i)
      views.push_back({values[i].data() + first * arrays[i].shape.elements(),
                       arrays[i].shape.prepended(std::min<int64_t>(3, kRows - first))});
    writer->append(views);
  }
  writer->finish();
}

void check_column(const Column& column, const Shape& shape, const std::vector<float>& expected) {
  REQUIRE(column.size() == kRows);
  REQUIRE(column.spec().dtype == DType::float32);
  REQUIRE(column.spec().shape.elements() == shape.elements());
  std::vector<int64_t> rows(kRows);
  std::iota(rows.begin(), rows.end(), 0);
  std::vector<float> found(expected.size());
  column.read(rows, found.data());
  CHECK(found == expected);
}

}  // namespace

TEST_CASE("written arrays are read back unchanged") {
  const TempDir folder;
  const TensorSpec array{"dense", {2, 3}, DType::float32};
  std::vector<std::vector<float>> values{numbers(kRows * 6, -20)};
  write(folder / "out.npy", {array}, values);
  check_column(*open_npy(folder / "out.npy"), array.shape, values[0]);
  write(folder / "out.h5", {array}, values);
  check_column(*open_hdf5(folder / "out.h5", "predictions"), array.shape, values[0]);
  CHECK(folder.entries() == 2);
}

TEST_CASE("one HDF5 file stores several arrays under their names") {
  const TempDir folder;
  const std::vector<TensorSpec> arrays{{"kind", {5}, DType::float32}, {"block_1/size", {}, DType::float32}};
  std::vector<std::vector<float>> values{numbers(kRows * 5, 0), numbers(kRows, 100)};
  write(folder / "out.h5", arrays, values);
  check_column(*open_hdf5(folder / "out.h5", "kind"), arrays[0].shape, values[0]);
  check_column(*open_hdf5(folder / "out.h5", "block_1/size"), arrays[1].shape, values[1]);
  CHECK_THROWS_AS(open_array_writer(folder / "out.npy", arrays, kRows), UserError);
}

TEST_CASE("an unfinished array file leaves the old file unchanged") {
  const TempDir folder;
  const TensorSpec array{"dense", {4}, DType::float32};
  std::vector<std::vector<float>> values{numbers(kRows * 4, 1)};
  for (const char* name : {"out.npy", "out.h5"}) {
    write(folder / name, {array}, values);
    const auto size = std::filesystem::file_size(folder / name);
    open_array_writer(folder / name, {array}, 2 * kRows).reset();
    CHECK(std::filesystem::file_size(folder / name) == size);
  }
  CHECK(folder.entries() == 2);
}

TEST_CASE("a file name without a known format or in a missing directory is an error") {
  const TempDir folder;
  const std::vector<TensorSpec> arrays{{"dense", {4}, DType::float32}};
  for (const char* name : {"out", "out.txt", "out.csv", "missing/out.h5", "missing/out.npy"})
    CHECK_THROWS_AS(open_array_writer(folder / name, arrays, kRows), UserError);
  CHECK(folder.entries() == 0);
}
