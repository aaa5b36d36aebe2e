// The file in which `cache: {file: PATH}` keeps decoded arrays. It consists of a magic number, the length and
// the CRC-32 of the header, the header, and the arrays. The header is JSON text with the identity of the
// decoded data, the specs and offsets of the arrays, and the size of the file. Each array begins at a
// multiple of 4096 bytes.
#pragma once

#include <optional>
#include <string>

#include "data/caches/cache.h"

namespace dtrain {

/// Maps the file into memory. Returns nullopt if the file does not exist, does not match the key, or is
/// damaged.
std::optional<CachedColumns> map_cache_file(const std::string& path, const CacheKey& key);

/// Throws UserError if a cache file cannot be written to `path`. This is the case if its folder does not
/// exist or is not writable. It is also the case if `path` exists and is not a cache file of dtrain, because
/// other files are never overwritten.
void check_cache_file(const std::string& path);
/// Like check_cache_file(path), but also throws UserError if another run is using the file for a different
/// data set (a different key).
void check_cache_file(const std::string& path, const CacheKey& key);

/// Maps the file that was just written. Throws UserError if another run has meanwhile replaced the file with
/// the cache of a different data set.
CachedColumns map_written_file(const std::string& path, const CacheKey& key);

/// Writes the rows [columns.first, to) of the columns to a temporary file in the folder of `path`, then
/// renames the file. Readers therefore find either the complete old file or the complete new one. Throws
/// UserError in the same cases as check_cache_file(), and Error if writing fails.
void write_cache_file(const std::string& path, const CacheKey& key, const CachedColumns& columns, int64_t to);

}  // namespace dtrain
