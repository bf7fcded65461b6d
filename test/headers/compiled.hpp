#pragma once

// The list of headers that were compiled: one object of this type in each translation unit.
struct compiled {
    explicit compiled(const char* header_name) noexcept : header(header_name), next(first) {
        first = this;
    }

    const char* header;
    const compiled* next;

    static inline const compiled* first = nullptr;
};
