package import UsherCore

/// The result of a request of the host: data, or the error.
package final class RequestResult {
  package let data: Secret?
  package let period: Milliseconds
  package let renewType: RenewType
  package let isRenewal: Bool
  package let error: UsherError

  package init(
    data: Secret?, period: Milliseconds = 0, renewType: RenewType = .none, isRenewal: Bool = false,
    error: UsherError = UsherError(.ok)
  ) {
    self.data = data
    self.period = period
    self.renewType = renewType
    self.isRenewal = isRenewal
    self.error = error
  }
}
