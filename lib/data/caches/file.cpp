#include "data/caches/cache.h"
#include "data/caches/cache_file.h"

namespace dtrain {

namespace {

struct FileCacheOptions {
  std::string path;
};

/// Keeps one cache file per source. The file is named after the first split that reads the source:
/// PATH.train, PATH.test, ...
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
    }  // the decoded data are freed here, before the file is mapped
    return map_written_file(path, key);
  }

 private:
  std::string path_of(const std::string& name) const { return path_ + "." + name; }

  std::string path_;
};

}  // namespace

void add_file_cache(Registry<Cache>& table) {
  Schema<FileCacheOptions> schema(
      "Decodes all samples once and writes them to cache files. Later runs map these files into memory. If "
      "the data or their options change, the files are written again. Several runs with the same data can "
      "use the files at the same time. Each data set needs its own path.");
  schema.example("{path: /tmp/mnist-cache}");
  schema.required("path", &FileCacheOptions::path,
                  "path of the cache files. The name of the split is appended to it: PATH.train, "
                  "PATH.validation, PATH.test");
  table.add<FileCache>("file", schema);
}

}  // namespace dtrain
