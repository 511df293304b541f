// swift-tools-version:6.0
// USHER_EMBEDDED=1 selects the shipped build (Embedded Swift); otherwise it is the checked build (ordinary Swift).
// USHER_RESOURCE_DIR is the toolchain's `runtimeResourcePath`; scripts/build-library sets it.
import PackageDescription

let embedded = Context.environment["USHER_EMBEDDED"] == "1"
let resourceDir = Context.environment["USHER_RESOURCE_DIR"] ?? "/usr/lib/swift"
let root = Context.packageDirectory
/// Whether this is a build with a sanitizer. Such a build has undefined symbols when it is linked (`-z lazy` below).
/// The sanitizer's run-time library defines them when a program loads both.
let isSanitized = Context.environment["USHER_SANITIZED"] == "1"
/// Whether the shipped library packs its relative relocations. They then take 0.2 kB instead of 29 kB. glibc reads them
/// since version 2.36; USHER_PACKED_RELOCATIONS=0 builds a library for systems with an older one.
let packsRelocations = embedded && !isSanitized && Context.environment["USHER_PACKED_RELOCATIONS"] != "0"
#if arch(arm64)
  let architecture = "aarch64"
#else
  let architecture = "x86_64"
#endif

/// Leaves out the tables for unwinding. They would be a tenth of the library, and nothing may unwind through it: no
/// exception, no cancellation. Debuggers read the same tables (`.debug_frame`) from the file with the debug
/// information. Sanitizers need the tables in the library.
let withoutUnwindTables =
  isSanitized ? [] : ["-Xcc", "-fno-unwind-tables", "-Xcc", "-fno-asynchronous-unwind-tables"]

/// Only the checked build checks exclusive access at run time; the same tests run in both builds. In the shipped build
/// this check would cost 24 kB and much time.
let swiftSettings: [SwiftSetting] =
  embedded
  ? [
    .enableExperimentalFeature("Embedded"),
    .unsafeFlags(
      [
        "-wmo", "-Osize", "-enforce-exclusivity=unchecked", "-Xfrontend", "-function-sections",
        // Without this option, the compiler copies a function for each closure passed to it. The copies take 4 kB and
        // are not faster.
        "-Xllvm", "-sil-disable-pass=closure-specialize",
        // Moves equal sequences of instructions to functions of their own (OUTLINED_FUNCTION_1 ... in a backtrace).
        // This saves 7 kB.
        "-Xllvm", "-enable-machine-outliner=always",
        // A call of another library jumps to the address in the global offset table. Without this option it would first
        // jump to a piece of code for each function (PLT). These pieces and their tables would take 3 kB.
        "-Xcc", "-fno-plt"
      ] + withoutUnwindTables)
  ]
  : []

/// Embedded Swift does not link the libraries that module maps name, so the linker settings name them.
let shippedLink: [String] =
  embedded
  ? [
    "\(resourceDir)/embedded/\(architecture)-unknown-linux-gnu/libswiftUnicodeDataTables.a",
    // The function in Sources/Usher/Allocation.swift replaces posix_memalign.
    "--wrap=posix_memalign"
  ]
  : []
let linkFlags: [String] =
  shippedLink.flatMap { ["-Xlinker", $0] }
  + [
    // Puts constants into a separate segment, which is not executable.
    "--rosegment",
    // Leaves out the index of unwind information: exceptions may not pass through the library, and debuggers do not
    // need the index.
    "--no-eh-frame-hdr",
    "--gc-sections", "--icf=all", "--version-script=\(root)/Sources/Usher/usher.map", "-soname=libusher.so.0",
    "-z", isSanitized ? "lazy" : "defs", "-z", "nodelete", "-z", "now", "-z", "relro", "-z", "noexecstack"
  ].flatMap { ["-Xlinker", $0] }
  // The shipped library is 4 % smaller with lld, which comes with the Swift toolchain.
  + (embedded && !isSanitized ? ["-use-ld=lld"] : [])
  + (packsRelocations ? ["-Xlinker", "-z", "-Xlinker", "pack-relative-relocs"] : [])

/// The simulation reads internal state of the engine, so its build needs `-enable-testing`. scripts/simulate passes
/// this option and sets USHER_SIMULATION.
let simulation: [Target] =
  Context.environment["USHER_SIMULATION"] == "1"
  ? [
    .executableTarget(
      name: "usher-simulate", dependencies: ["UsherCore", "UsherEngine", "CPlatform", "TestSupport"],
      path: "Tests/UsherSimulation")
  ]
  : []

let package = Package(
  name: "Usher",
  products: [.library(name: "usher", type: .dynamic, targets: ["Usher"])],
  targets: [
    .systemLibrary(name: "CUsher", path: "include"),
    .systemLibrary(name: "CCurl", path: "Sources/CCurl"),
    .systemLibrary(name: "CJSONC", path: "Sources/CJSONC"),
    .systemLibrary(name: "CPlatform", path: "Sources/CPlatform"),
    .systemLibrary(name: "CGuard", path: "Sources/CGuard"),
    .target(name: "UsherCore", swiftSettings: swiftSettings),
    .target(
      name: "UsherEngine", dependencies: ["UsherCore", "CCurl", "CGuard", "CJSONC", "CPlatform"],
      swiftSettings: swiftSettings),
    .target(
      name: "Usher", dependencies: ["UsherEngine", "UsherCore", "CUsher", "CPlatform"], exclude: ["usher.map"],
      swiftSettings: swiftSettings,
      linkerSettings: [.linkedLibrary("curl"), .linkedLibrary("json-c"), .linkedLibrary("m"), .unsafeFlags(linkFlags)])
  ]
    + (embedded
      ? []
      : [
        .target(name: "TestSupport", dependencies: ["UsherCore"], path: "Tests/Support"),
        .executableTarget(name: "usher-model", dependencies: ["UsherCore", "TestSupport"], path: "Tests/UsherModel"),
        .testTarget(name: "UsherCoreTests", dependencies: ["UsherCore", "TestSupport"]),
        .testTarget(name: "UsherEngineTests", dependencies: ["UsherEngine", "UsherCore", "CGuard", "TestSupport"])
      ]) + simulation
)
