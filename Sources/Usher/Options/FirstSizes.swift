// Generated from Tests/abi/releases by scripts/generate. `scripts/abi record` records the sizes of a release.
internal import CUsher

extension usher_context_options: GrowingStruct { static var firstSize: Int { 160 } }
extension usher_ssp_options: GrowingStruct { static var firstSize: Int { 200 } }
extension usher_ssp_v2_options: GrowingStruct { static var firstSize: Int { 64 } }
extension usher_default_options: GrowingStruct { static var firstSize: Int { 48 } }
extension usher_delegate_hooks: GrowingStruct { static var firstSize: Int { 64 } }
extension usher_token_map_options: GrowingStruct { static var firstSize: Int { 24 } }
extension usher_license_request: GrowingStruct { static var firstSize: Int { 56 } }
extension usher_response_info: GrowingStruct { static var firstSize: Int { 96 } }
extension usher_customer_options: GrowingStruct { static var firstSize: Int { 104 } }
extension usher_customer_callbacks: GrowingStruct { static var firstSize: Int { 40 } }
extension usher_customer_license: GrowingStruct { static var firstSize: Int { 64 } }
extension usher_playback_options: GrowingStruct { static var firstSize: Int { 88 } }
extension usher_entitlement: GrowingStruct { static var firstSize: Int { 40 } }
extension usher_loader_options: GrowingStruct { static var firstSize: Int { 200 } }
extension usher_metrics: GrowingStruct { static var firstSize: Int { MemoryLayout<usher_metrics>.size } }
extension usher_pending: GrowingStruct { static var firstSize: Int { 40 } }
