// Damage to a checkpoint is always detected. HDF5 files that refer to other files are rejected.
#include <functional>

#include <doctest/doctest.h>
#include <hdf5.h>

#include "base/error.h"
#include "checkpoint/layout.h"
#include "hdf5/hdf5_session.h"
#include "sample.h"

namespace dtrain {
using namespace test;

namespace {
/// Returns the error message of loading the file, or "loaded".
std::string refusal(const std::string& path) {
  try {
    Checkpoint::load(path);
  } catch (const UserError& error) {
    return error.what();
  }
  return "loaded";
}

/// Prepends a header with the right checksum to a plain HDF5 file.
void frame(const std::string& path) {
  const std::string image = read_file(path);
  write_file(path, make_header(std::vector{std::as_bytes(std::span(image))}) + image);
}

/// Strips the header, applies `change` to the HDF5 file, prepends a correct header, and returns the error
/// message of loading the file.
std::string refusal_of_changed(const std::function<void(hid_t)>& change) {
  const TempDir directory;
  const std::string path = directory / "a.h5";
  save_checkpoint(path, Sample().content);
  write_file(path, read_file(path).substr(kHeaderBytes));
  {
    const Hdf5Session session;
    // The file keeps the version of HDF5's format that dtrain writes. A newer version is used only if a
    // change requires it.
    const hid_t format = H5Pcreate(H5P_FILE_ACCESS);
    H5Pset_libver_bounds(format, H5F_LIBVER_V18, H5F_LIBVER_LATEST);
    const hid_t file = H5Fopen(path.c_str(), H5F_ACC_RDWR, format);
    REQUIRE(file >= 0);
    change(file);
    REQUIRE(H5Fclose(file) >= 0);
    H5Pclose(format);
  }
  frame(path);
  return refusal(path);
}

constexpr char kBias[] = "/model_weights/conv/conv/bias:0";

/// Replaces the bias with another float32 dataset.
void replace_bias(hid_t file, const std::vector<hsize_t>& extents, const std::function<void(hid_t)>& options,
                  hid_t type = H5T_IEEE_F32LE) {
  H5Ldelete(file, kBias, H5P_DEFAULT);
  const hid_t list = H5Pcreate(H5P_DATASET_CREATE);
  options(list);
  const hid_t space = H5Screate_simple(static_cast<int>(extents.size()), extents.data(), nullptr);
  const hid_t dataset = H5Dcreate2(file, kBias, type, space, H5P_DEFAULT, list, H5P_DEFAULT);
  REQUIRE(dataset >= 0);
  H5Dclose(dataset);
  H5Sclose(space);
  H5Pclose(list);
}
}  // namespace

TEST_CASE("a truncated checkpoint is an error") {
  const TempDir directory;
  save_checkpoint(directory / "a.h5", Sample().content);
  const std::string whole = read_file(directory / "a.h5");
  for (size_t part = 0; part < 50; ++part) {
    write_file(directory / "b.h5", whole.substr(0, whole.size() * part / 50));
    CHECK(refusal(directory / "b.h5").find("b.h5: expected ") != std::string::npos);
  }
  write_file(directory / "b.h5", whole.substr(0, whole.size() - 1));
  CHECK(refusal(directory / "b.h5").find("cut short") != std::string::npos);
  write_file(directory / "b.h5", whole + "x");
  CHECK(refusal(directory / "b.h5").find("too long") != std::string::npos);
}

TEST_CASE("a flipped bit in any byte is an error") {
  const TempDir directory;
  save_checkpoint(directory / "a.h5", Sample().content);
  std::string bytes = read_file(directory / "a.h5");
  size_t refused = 0;
  for (size_t at = 0; at < bytes.size(); ++at) {
    const char original = bytes[at];
    bytes[at] = static_cast<char>(original ^ (1 << at % 8));
    write_file(directory / "b.h5", bytes);
    if (refusal(directory / "b.h5") != "loaded") ++refused;
    bytes[at] = original;
  }
  CHECK(refused == bytes.size());
}

TEST_CASE("if a file is not a checkpoint, the error says what is wrong with it") {
  const TempDir directory;
  CHECK(refusal(directory / "missing.h5").find("No such file") != std::string::npos);
  CHECK(refusal(directory.path()).find("expected a file") != std::string::npos);
  write_file(directory / "a.h5", "a,b\n1,2\n");
  CHECK(refusal(directory / "a.h5").find("expected a checkpoint of dtrain") != std::string::npos);
  save_checkpoint(directory / "b.h5", Sample().content);
  const std::string whole = read_file(directory / "b.h5");
  write_file(directory / "b.h5", whole.substr(kHeaderBytes));
  CHECK(refusal(directory / "b.h5").find("another program") != std::string::npos);
  write_file(directory / "b.h5", "dtrain checkpoint\nformat 3\n" + whole.substr(27));
  CHECK(refusal(directory / "b.h5")
            .find("expected a format version from 1 to 2, found version 3; the file was written by a later "
                  "version") != std::string::npos);
}

TEST_CASE("damaged HDF5 structures with a valid checksum are errors, not crashes") {
  const TempDir directory;
  save_checkpoint(directory / "a.h5", Sample().content);
  const std::string image = read_file(directory / "a.h5").substr(kHeaderBytes);
  size_t loaded = 0;
  for (size_t at = 0; at < image.size(); at += 5) {
    std::string damaged = image;
    damaged[at] = static_cast<char>(~damaged[at]);
    write_file(directory / "b.h5", damaged);
    frame(directory / "b.h5");
    // A change may go unnoticed if it is in array data, in gaps, in unused metadata or in HDF5's own
    // checksums, because the reader does not check these parts.
    if (refusal(directory / "b.h5") == "loaded") ++loaded;
  }
  CHECK(loaded < image.size() / 8);
}

TEST_CASE("links and storage outside the HDF5 file are errors") {
  CHECK(refusal_of_changed([](hid_t) {}) == "loaded");
  CHECK(refusal_of_changed([](hid_t file) {
          H5Ldelete(file, kBias, H5P_DEFAULT);
          H5Lcreate_external("other.h5", "/x", file, kBias, H5P_DEFAULT, H5P_DEFAULT);
        }).find("soft or external link") != std::string::npos);
  CHECK(refusal_of_changed([](hid_t file) {
          replace_bias(file, {3}, [](hid_t list) { H5Pset_external(list, "other.bin", 0, 12); });
        }).find("external storage") != std::string::npos);
  CHECK(refusal_of_changed([](hid_t file) {
          replace_bias(file, {3}, [](hid_t list) {
            const hsize_t extent = 3;
            const hid_t space = H5Screate_simple(1, &extent, nullptr);
            H5Pset_virtual(list, space, "other.h5", "/x", space);
            H5Sclose(space);
          });
        }).find("a virtual one") != std::string::npos);
}

TEST_CASE("storage, types and shapes that dtrain does not write are errors") {
  CHECK(refusal_of_changed([](hid_t file) {
          replace_bias(file, {3}, [](hid_t list) {
            const hsize_t chunk = 3;
            H5Pset_chunk(list, 1, &chunk);
            H5Pset_deflate(list, 1);
          });
        }).find("expected a contiguous dataset") != std::string::npos);
  CHECK(refusal_of_changed([](hid_t file) {
          replace_bias(
              file, {3}, [](hid_t) {}, H5T_IEEE_F32BE);
        }).find("another type") != std::string::npos);
  CHECK(refusal_of_changed([](hid_t file) {
          replace_bias(file, {hsize_t{1} << 40}, [](hid_t) {});
        }).find("a shape whose data fit into the file") != std::string::npos);
  CHECK(refusal_of_changed([](hid_t file) {
          // The dataset is never written, so the file has no storage for it.
          replace_bias(file, {3}, [](hid_t) {});
        }).find("within the file") != std::string::npos);
  CHECK(refusal_of_changed([](hid_t file) {
          H5Ldelete(file, kState, H5P_DEFAULT);
        }).find("could not open /dtrain/state") != std::string::npos);
}
}  // namespace dtrain
