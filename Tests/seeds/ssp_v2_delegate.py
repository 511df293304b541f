"""The licence delegate for SSM V2, ported line by line to Python.

Arguments, actions and output are those of ssp_v2_delegate.c. S1:12 is line 12 of document S1 (see README.md).
"""

from __future__ import annotations

import sys

from av_player import MainQueue, make_spc, say, show

import usher

SSM_ERRORS = (usher.EventType.SETUP_ERROR, usher.EventType.HEARTBEAT_ERROR, usher.EventType.TEARDOWN_ERROR)


class App:
    def __init__(self, drm_manager: usher.Context) -> None:
        self.main_queue = MainQueue()
        self.drm_manager = drm_manager  # OTVDRMManager.shared
        self.player = usher.Player(drm_manager)  # OTVAVPlayer
        self.item: usher.Playback | None = None  # OTVAVPlayerItem
        self.stream = ["", "", ""]
        drm_manager.add_observer(self.observer)  # S1:25-27  NotificationCenter.default.addObserver(...)

    def observer(self, event: usher.Event) -> None:
        if event.type in SSM_ERRORS:
            self.did_receive_ssm_error(event)
        else:
            say(event.type.name)

    def did_receive_ssm_error(self, notification: usher.Event) -> None:
        """Seed S1, line 28: the method that the page declares as @objc func didReceiveSSMError(_ notification:
        NSNotification)"""
        assert notification.error is not None
        ssm_error = notification.error.service_code  # S1:31  userInfo?["errorCode"]
        code = notification.error.http_status  # S1:33  userInfo?["code"]
        message = notification.error.message  # S1:35  userInfo?["message"]
        say(f"{notification.type.name}: error {ssm_error} HTTP status code {code} and message {message}")
        if notification.type is usher.EventType.HEARTBEAT_ERROR:
            self.main_queue.post("zap")  # S1:43  "stop playback and attempt to zap to the same stream"

    def key_request(self) -> None:
        """Seed S1, line 16: FairPlay asks for a key when the item starts, and again when playback moves to AirPlay or
        back."""
        assert self.item is not None
        clip, url, _ = self.stream
        try:
            spc = make_spc(self.item.get_certificate(), self.item.get_content_id(url))
            ckc = self.item.get_license(usher.KeySystem.FAIRPLAY, spc, asset_id=url)
        except usher.UsherError as error:  # S1:23  "should not continue"
            say(f"no licence: USHER_E_{error.status.name}")
        else:
            show(clip, spc, ckc.data)

    def play(self) -> None:
        """Seed S1, line 12: the page says "every playback will have an SSM session"."""
        self.item = self.player.play(content_token=self.stream[2])
        say("play: USHER_OK")
        self.key_request()

    def teardown(self) -> None:
        """Seed S1, line 12: after the playback has stopped, the page says "Application will need to teardown the
        session specifically"."""
        assert self.item is not None
        self.item.close(usher.CloseMode.TEARDOWN)
        say("teardown: USHER_OK")


def main(certificate_url: str, license_url: str, ssm_server_url: str, *fresh_token: str) -> None:
    def token(request: usher.TokenRequest) -> str | None:
        """S1:17  func token() -> String?"""
        say("token()")
        return None if fresh_token[0] == "-" else fresh_token[0]

    with usher.Context() as drm_manager:
        # S1:11  OTVSSPLicenseDelegateV2.init(certificateURL:licenseURL:ssmServerURL)
        license_delegate = usher.SSPV2Delegate(
            drm_manager, certificate_url=certificate_url, license_url=license_url, ssm_url=ssm_server_url
        )
        if fresh_token:
            license_delegate.set_token_callback(token)  # S1:15  setToken(sspTokenCallback:)
        drm_manager.set_delegate(license_delegate)
        app = App(drm_manager)
        while next := app.main_queue.next():
            match next[0]:
                case "play":
                    app.stream = next[1:]
                    app.play()
                case "airplay":  # S1:16
                    app.key_request()
                case "background":  # S1:40
                    drm_manager.suspend()
                case "foreground":  # S1:42
                    drm_manager.resume()
                case "picture-in-picture":  # S1:44: nothing to do
                    say("the SSM service as normal")
                case "zap":  # S1:43
                    app.player.stop()
                    say("stopped")
                    app.play()
                case "stop":  # S1:12  "When the playback stops, ..."
                    app.player.stop()
                    say("stopped")
                case "teardown":
                    app.teardown()


if __name__ == "__main__":
    main(*sys.argv[1:])
