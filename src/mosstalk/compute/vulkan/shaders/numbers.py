"""Functions in WGSL that drivers compute too coarsely: the language allows an exp 3 + 2 |x| units
in the last place. Coefficients are those of the cpu backend (cpu/native/kernels_rows.hpp)."""

# Relative error below 2e-7 on [-87, 88]; 0 below, e^88 above.
EXP = """
fn exp_of(x: f32) -> f32 {
    let inside = clamp(x, -87.0, 88.0);
    let n = round(inside * 1.44269504);
    var r = fma(n, -0.693145752, inside);  // ln 2 in two parts
    r = fma(n, -1.42860677e-6, r);
    var p = 1.0 / 5040.0;
    p = fma(p, r, 1.0 / 720.0);
    p = fma(p, r, 1.0 / 120.0);
    p = fma(p, r, 1.0 / 24.0);
    p = fma(p, r, 1.0 / 6.0);
    p = fma(p, r, 0.5);
    p = fma(p, r, 1.0);
    p = fma(p, r, 1.0);
    let power = bitcast<f32>((i32(n) + 127) << 23u);
    return select(p * power, 0.0, x < -87.0);
}
"""

# erf(x) = 1 - exp(-x p(x)) for x >= 0: absolute error below 2e-7.
ERF = (
    EXP
    + """
fn erf_of(x: f32) -> f32 {
    let a = min(abs(x), 3.9);
    var p = -5.29427916e-6;
    p = fma(p, a, 7.94786101e-5);
    p = fma(p, a, -4.85232071e-4);
    p = fma(p, a, 1.37093593e-3);
    p = fma(p, a, 1.71464650e-4);
    p = fma(p, a, -1.93614215e-2);
    p = fma(p, a, 1.02847218e-1);
    p = fma(p, a, 6.36608720e-1);
    p = fma(p, a, 1.12837970);
    let size = 1.0 - exp_of(-a * p);
    return select(size, -size, x < 0.0);
}
"""
)
