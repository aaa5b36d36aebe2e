#include "data/caches/cache.h"
#include "data/caches/cache_file.h"

namespace dtrain {

namespace {

struct FileCacheOptions {
  std::string path;
};

/// Keeps one file per source: PATH.train, PATH.test, ..., named after the first split that reads it.
class FileCache final : public Cache {
 public:
  explicit FileCache(const FileCacheOptions& options) : path_(options.path) {}
  void check(const std::string& name) const override { check_cache_file(path_of(name)); }

 protected:
  CachedColumns make(const CacheKey& key, const Open& open) const override {
    const std::string path = path_of(key.name);
    if (auto cached = map_cache_file(path, key)) return *std::move(cached);
    check_cache_file(path, key);  // the file is checked before all samples are read
    {
      SourceColumns source = open();
      const int64_t total = source.columns.front()->size();
      const auto [from, to] = rows_to_keep(key, total);
      write_cache_file(path, key, {std::move(source), from, total}, to);
    }  // frees the decoded data before the file is mapped
    return map_written_file(path, key);
  }

 private:
  std::string path_of(const std::string& name) const { return path_ + "." + name; }

  std::string path_;
};

}  // namespace

void add_file_cache(Registry<Cache>& table) {
  Schema<FileCacheOptions> schema(
      "Decodes all samples once and writes them to files, which later runs map into memory. The files are "
      "written again when the data or their options change. Several runs of the same data can use the files "
      "at the same time; each data set needs its own path.");
  schema.example("{path: /tmp/mnist-cache}");
  schema.required("path", &FileCacheOptions::path,
                  "path of the files; the split's name is added to it: PATH.train, ...");
  table.add<FileCache>("file", schema);
}

}  // namespace dtrain
