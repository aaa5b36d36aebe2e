#include "data/splits/data_identity.h"

#include <algorithm>
#include <array>
#include <filesystem>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <isa-l/crc64.h>

#include "base/files/paths.h"
#include "data/files/input_file.h"

namespace dtrain {

namespace {

// The endings of YAML lines whose key has an empty value.
constexpr std::array<const char*, 4> kEmptyValues{": null", ": \"\"", ": []", ": {}"};

/// Returns a digest of the content of a file. For a small file, all bytes are included. For a large file,
/// only the first block, the last block, and blocks at equal distances between them are included.
std::string digest_of(const InputFile& file) {
  constexpr int64_t kWhole = int64_t{4} << 20, kBlock = int64_t{16} << 10, kBlocks = 64;
  const bool whole = file.size() <= kWhole;
  const int64_t blocks = whole ? (file.size() + kBlock - 1) / kBlock : kBlocks;
  std::vector<unsigned char> block(kBlock);
  uint64_t digest = 0;
  for (int64_t i = 0; i < blocks; ++i) {
    const int64_t offset = whole ? i * kBlock : (file.size() - kBlock) / (kBlocks - 1) * i;
    const int64_t begin = !whole && i + 1 == blocks ? file.size() - kBlock : offset;
    const auto bytes = static_cast<size_t>(std::min(kBlock, file.size() - begin));
    file.read(begin, block.data(), bytes);
    digest = crc64_ecma_refl(digest, block.data(), bytes);
  }
  return fmt::format("{:016x}", digest);
}

std::string one_line(std::string text) {
  while (text.ends_with('\n')) text.pop_back();
  std::replace(text.begin(), text.end(), '\n', ' ');
  return text;
}

/// Returns only the options that have a value. Options with an empty value are removed because older versions
/// of dtrain, which do not have these options, do not write them.
std::string options_that_are_set(const std::string& yaml) {
  std::string set;
  for (size_t at = 0; at < yaml.size();) {
    const size_t end = std::min(yaml.find('\n', at), yaml.size());
    const std::string line = yaml.substr(at, end - at);
    const bool is_empty = std::any_of(kEmptyValues.begin(), kEmptyValues.end(),
                                      [&](const char* value) { return line.ends_with(value); });
    if (!is_empty) set += line + "\n";
    at = end + 1;
  }
  return set;
}

}  // namespace

Json DataIdentity::to_json() const {
  Json all = Json::array();
  for (const File& file : files)
    all.push(Json::object().set("name", file.name).set("bytes", file.bytes).set("digest", file.digest));
  Json json = Json::object().set("reader", reader).set("files", std::move(all));
  json.set("samples", samples).set("from", from).set("to", to);
  if (!drawn.empty()) json.set("drawn", drawn);
  return json;
}

DataIdentity DataIdentity::from_json(const Json& json) {
  DataIdentity identity;
  identity.reader = json.at("reader").as_string();
  for (const Json& file : json.at("files").items())
    identity.files.push_back(
        {file.at("name").as_string(), file.at("bytes").as_int(), file.at("digest").as_string()});
  identity.samples = json.at("samples").as_int();
  identity.from = json.at("from").as_int();
  identity.to = json.at("to").as_int();
  if (const Json* drawn = json.find("drawn")) identity.drawn = drawn->as_string();
  return identity;
}

std::vector<DataIdentity::File> identify_files(const std::vector<std::string>& paths) {
  std::vector<DataIdentity::File> files;
  for (const std::string& path : paths) {
    if (file_type(path) == FileType::directory) {
      files.push_back(
          identify_listing(std::filesystem::path(path).filename().string(), {path, list_folder(path)}));
      continue;
    }
    const InputFile file(path);
    files.push_back({std::filesystem::path(path).filename().string(), file.size(), digest_of(file)});
  }
  return files;
}

DataIdentity::File identify_listing(std::string name, const FileListing& listing) {
  constexpr size_t kMostRead = 64, kBlock = size_t{16} << 10;
  const std::vector<ListedFile>& files = listing.files;
  DataIdentity::File identity{std::move(name), 0, ""};
  uint64_t digest = 0;
  const auto add = [&](const std::string& bytes) {
    digest = crc64_ecma_refl(digest, reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size());
  };
  const size_t step = std::max<size_t>(1, files.size() / kMostRead);
  for (size_t i = 0; i < files.size(); ++i) {
    const std::string& path = files[i].path;
    // Full paths are not included because the digest must stay the same if the files are in another folder.
    add(fmt::format("{}\n{}\n", listing.folder.empty() ? path.substr(path.rfind('/') + 1) : path,
                    files[i].bytes));
    identity.bytes += files[i].bytes;
    if (i % step != 0 || !files[i].problem.empty()) continue;
    const InputFile file(path_in(listing.folder, path));
    std::string start(std::min(kBlock, static_cast<size_t>(file.size())), '\0');
    file.read(0, start.data(), start.size());
    add(start);
  }
  identity.digest = fmt::format("{:016x}", digest);
  return identity;
}

std::string describe_change(const DataIdentity& before, const DataIdentity& now) {
  std::vector<std::string> changes;
  if (options_that_are_set(before.reader) != options_that_are_set(now.reader))
    changes.push_back(
        fmt::format("its reader is {} (it was {})", one_line(now.reader), one_line(before.reader)));
  if (before.files.size() != now.files.size())
    changes.push_back(
        fmt::format("the number of files is {} (it was {})", now.files.size(), before.files.size()));
  for (size_t i = 0; i < std::min(before.files.size(), now.files.size()); ++i) {
    const auto &was = before.files[i], &is = now.files[i];
    if (was.bytes == is.bytes && was.digest == is.digest) continue;
    const std::string name =
        was.name == is.name ? is.name : fmt::format("{} (before: {})", is.name, was.name);
    changes.push_back(was.bytes == is.bytes
                          ? fmt::format("{} has different content", name)
                          : fmt::format("{} has {} bytes (it had {})", name, is.bytes, was.bytes));
  }
  if (before.samples != now.samples)
    changes.push_back(fmt::format("the number of samples is {} (it was {})", now.samples, before.samples));
  if (before.from != now.from || before.to != now.to)
    changes.push_back(
        fmt::format("the rows are [{}, {}) (they were [{}, {}))", now.from, now.to, before.from, before.to));
  if (before.drawn != now.drawn)
    changes.push_back(fmt::format("the samples are selected differently: {} (before: {})",
                                  now.drawn.empty() ? "not drawn" : now.drawn,
                                  before.drawn.empty() ? "not drawn" : before.drawn));
  return fmt::format("{}", fmt::join(changes, "; "));
}

}  // namespace dtrain
