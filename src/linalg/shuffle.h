/* shuffle.h - lanes of two vectors picked by a vector of numbers: gcc's builtin, and plain lanes
 * where clang, which builds the sanitizer and fuzz targets, has none with numbers known at run time
 * alone. */
#ifndef FRGI_SHUFFLE_H
#define FRGI_SHUFFLE_H

#if defined(__clang__)
#define FRGI_SHUFFLE(a, b, numbers)                                                                \
    __extension__({                                                                                \
        const __typeof__(a) first_ = (a), second_ = (b);                                           \
        const __typeof__(numbers) from_ = (numbers);                                               \
        const int lanes_ = (int)(sizeof first_ / sizeof first_[0]);                                \
        __typeof__((a) + (a)) picked_ = first_; /* without const */                                \
        for (int lane_ = 0; lane_ < lanes_; lane_++) {                                             \
            const int at_ = (int)from_[lane_];                                                     \
            picked_[lane_] = at_ < lanes_ ? first_[at_] : second_[at_ - lanes_];                   \
        }                                                                                          \
        picked_;                                                                                   \
    })
#else
#define FRGI_SHUFFLE(a, b, numbers) __builtin_shuffle((a), (b), (numbers))
#endif

#endif
