// The file in which `cache: {file: PATH}` keeps decoded arrays. Layout: magic, length and CRC-32 of the
// header, header (JSON: identity of the decoded data, specs and offsets of the arrays, size of the file),
// arrays, each at a multiple of 4096 bytes.
#pragma once

#include <optional>
#include <string>

#include "data/caches/cache.h"

namespace dtrain {

/// Maps the file into memory. Returns nullopt if the file does not exist, does not match the key, or is
/// damaged.
std::optional<CachedColumns> map_cache_file(const std::string& path, const CacheKey& key);

/// Throws UserError if a cache file could not be written: its folder does not exist or is not writable, or
/// `path` exists and is not a cache file of dtrain, which is never overwritten.
void check_cache_file(const std::string& path);
/// Like check_cache_file(path), but also throws UserError if another run is using the file for a data set
/// that does not have this key.
void check_cache_file(const std::string& path, const CacheKey& key);

/// Maps the file that was just written. Throws UserError if another run has replaced it with the cache of
/// another data set.
CachedColumns map_written_file(const std::string& path, const CacheKey& key);

/// Writes rows [columns.first, to) of the columns to a temporary file in the folder of `path`, then renames
/// it, so that readers find either the old or the new file, complete. Throws like check_cache_file(), and
/// Error if writing fails.
void write_cache_file(const std::string& path, const CacheKey& key, const CachedColumns& columns, int64_t to);

}  // namespace dtrain
