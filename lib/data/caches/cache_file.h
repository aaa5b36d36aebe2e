// The file of decoded arrays that `cache: {file: PATH}` keeps. Layout: magic, the header's length and CRC-32,
// the header (JSON: the identity of what was decoded, the arrays' specs and offsets, the file's size), the
// arrays, each at a multiple of 4096.
#pragma once

#include <optional>
#include <string>

#include "data/caches/cache.h"

namespace dtrain {

/// Maps the file into memory. Returns nothing where the file does not exist, holds something else than
/// the key says, or is damaged.
std::optional<CachedColumns> map_cache_file(const std::string& path, const CacheKey& key);

/// Throws UserError where a cache file could not be written: its folder does not exist or may not be written
/// to, or a file stands there that is no cache file of dtrain's, which is never written over.
void check_cache_file(const std::string& path);
/// The same for these samples: also where another run uses the file for another data set.
void check_cache_file(const std::string& path, const CacheKey& key);

/// Maps the file that was just written. Throws UserError where another run has replaced it by another data
/// set's.
CachedColumns map_written_file(const std::string& path, const CacheKey& key);

/// Writes rows [columns.first, to) of the columns to a temporary file beside `path`, then renames it, so that
/// readers find either the old file or the new one, whole. Throws as check_cache_file does, and Error where
/// writing fails.
void write_cache_file(const std::string& path, const CacheKey& key, const CachedColumns& columns, int64_t to);

}  // namespace dtrain
