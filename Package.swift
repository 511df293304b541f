// swift-tools-version:6.0
// USHER_EMBEDDED=1 makes the shipped build (Embedded Swift); without it the checked build (ordinary Swift, `swift test`).
// USHER_RESOURCE_DIR is the toolchain's `runtimeResourcePath`; scripts/build-library hands it in.
import PackageDescription

let embedded = Context.environment["USHER_EMBEDDED"] == "1"
let resourceDir = Context.environment["USHER_RESOURCE_DIR"] ?? "/usr/lib/swift"
let root = Context.packageDirectory
/// A sanitizer's runtime is found at load time only.
let isSanitized = Context.environment["USHER_SANITIZED"] == "1"
#if arch(arm64)
  let architecture = "aarch64"
#else
  let architecture = "x86_64"
#endif

/// Exclusive access is checked as it runs in the checked build only, under the same tests: in the shipped one it costs 24 kB and a good part of its time.
let swiftSettings: [SwiftSetting] =
  embedded
  ? [
    .enableExperimentalFeature("Embedded"),
    .unsafeFlags(["-wmo", "-Osize", "-enforce-exclusivity=unchecked", "-Xfrontend", "-function-sections"])
  ]
  : []

/// In Embedded Swift the autolink entries of the module maps are not passed on, so the libraries are named here.
let shippedLink: [String] =
  embedded
  ? ["\(resourceDir)/embedded/\(architecture)-unknown-linux-gnu/libswiftUnicodeDataTables.a"]
  : []
let linkFlags: [String] =
  shippedLink.flatMap { ["-Xlinker", $0] }
  + [
    // No table to find unwind information by: no exception may pass through us, and debuggers do without it.
    "--no-eh-frame-hdr",
    "--gc-sections", "--icf=all", "--version-script=\(root)/Sources/Usher/usher.map", "-soname=libusher.so.0",
    "-z", isSanitized ? "lazy" : "defs", "-z", "nodelete", "-z", "now", "-z", "relro", "-z", "noexecstack"
  ].flatMap { ["-Xlinker", $0] }

let package = Package(
  name: "Usher",
  products: [.library(name: "usher", type: .dynamic, targets: ["Usher"])],
  targets: [
    .systemLibrary(name: "CUsher", path: "include"),
    .systemLibrary(name: "CCurl", path: "Sources/CCurl"),
    .systemLibrary(name: "CJSONC", path: "Sources/CJSONC"),
    .systemLibrary(name: "CPlatform", path: "Sources/CPlatform"),
    .target(name: "UsherCore", swiftSettings: swiftSettings),
    .target(
      name: "UsherEngine", dependencies: ["UsherCore", "CCurl", "CJSONC", "CPlatform"], swiftSettings: swiftSettings),
    .target(
      name: "Usher", dependencies: ["UsherEngine", "UsherCore", "CUsher", "CPlatform"], exclude: ["usher.map"],
      swiftSettings: swiftSettings,
      linkerSettings: [.linkedLibrary("curl"), .linkedLibrary("json-c"), .linkedLibrary("m"), .unsafeFlags(linkFlags)])
  ]
    + (embedded
      ? []
      : [
        .executableTarget(name: "usher-model", dependencies: ["UsherCore"], path: "Tests/UsherModel"),
        .executableTarget(
          name: "usher-simulate", dependencies: ["UsherCore", "UsherEngine", "CPlatform"], path: "Tests/UsherSimulation"
        ),
        .testTarget(name: "UsherCoreTests", dependencies: ["UsherCore"]),
        .testTarget(name: "UsherEngineTests", dependencies: ["UsherEngine", "UsherCore"])
      ])
)
