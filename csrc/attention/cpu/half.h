// float16 and bfloat16 as bits, to and from float, on any processor: branch-free, so that loops over them vectorise.
#pragma once

#include <cstdint>
#include <cstring>

namespace fa_s512 {

struct Half {
  uint16_t bits;
};

struct BFloat16 {
  uint16_t bits;
};

inline float as_float(uint32_t bits) {
  float value;
  std::memcpy(&value, &bits, sizeof(value));
  return value;
}

inline uint32_t as_bits(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof(bits));
  return bits;
}

inline float to_float(float value) { return value; }

inline float to_float(BFloat16 value) { return as_float(static_cast<uint32_t>(value.bits) << 16); }

inline float to_float(Half value) {
  const uint32_t sign = static_cast<uint32_t>(value.bits & 0x8000) << 16;
  const uint32_t magnitude = value.bits & 0x7FFF;
  // Exponent and fraction move to float's places; the bias grows by 112, and Inf and NaN take float's largest exponent.
  const uint32_t normal = (magnitude << 13) + (magnitude < 0x7C00 ? 112u << 23 : 224u << 23);
  // A subnormal is fraction · 2^-24: put under the exponent of ½ it counts units of 2^-24, and ½ is taken off again.
  // No subnormal float takes part, so that a thread that flushes them computes the same.
  const float subnormal = as_float((126u << 23) | magnitude) - 0.5f;
  return as_float(sign | (magnitude < 0x0400 ? as_bits(subnormal) : normal));
}

inline void from_float(float value, float& result) { result = value; }

inline void from_float(float value, BFloat16& result) {
  const uint32_t bits = as_bits(value);
  const uint32_t rounded = (bits + 0x7FFF + ((bits >> 16) & 1)) >> 16;  // to nearest, ties to even
  const uint32_t quiet_nan = (bits >> 16) | 0x0040;
  result.bits = static_cast<uint16_t>((bits & 0x7FFFFFFF) > 0x7F800000 ? quiet_nan : rounded);
}

inline void from_float(float value, Half& result) {
  const uint32_t sign = as_bits(value) & 0x80000000;
  const uint32_t magnitude = as_bits(value) ^ sign;
  // Normal: the bias shrinks by 112; the carry of the rounding (to nearest, ties to even) may reach the exponent, also
  // that of infinity. Subnormal: adding ½ rounds to units of 2^-24, which are then the low bits.
  const uint32_t normal = (magnitude - (112u << 23) + 0x0FFF + ((magnitude >> 13) & 1)) >> 13;
  const uint32_t subnormal = as_bits(as_float(magnitude) + 0.5f) - (126u << 23);
  const uint32_t infinite = magnitude > 0x7F800000 ? 0x7E00 : 0x7C00;
  const uint32_t finite = magnitude < (113u << 23) ? subnormal : normal;
  result.bits = static_cast<uint16_t>((sign >> 16) | (magnitude < (143u << 23) ? finite : infinite));
}

}  // namespace fa_s512
