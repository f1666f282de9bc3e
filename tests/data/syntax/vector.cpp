// A vector of three numbers.
#include <cmath>
#include <vector>

namespace geo {

template <typename T>
struct Vec3 {
    T x{}, y{}, z{};

    Vec3 operator+(const Vec3& other) const { return {x + other.x, y + other.y, z + other.z}; }

    auto length() const -> double {
        return std::sqrt(x * x + y * y + z * z);
    }
};

double longest(const std::vector<Vec3<double>>& vectors) {
    double best = 0.0;
    for (const auto& v : vectors) {
        if (auto l = v.length(); l > best) {
            best = l;
        }
    }
    return best;
}

}  // namespace geo

int main() {
    auto f = [](int n) { return n > 1 ? n * 2 : 0; };
    return f(static_cast<int>(geo::longest({{1.0, 2.0, 2.0}})));
}
