/*
 * fairplay_loader.cpp - the FairPlay resource loader of the seed, ported line by line to C++. Arguments and output are
 * those of fairplay_loader.c. S4:67 is line 67 of document S4 (see README.md).
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "av_player.h"
#include <string>
#include <usher/usher.hpp>

// Seed S4, line 77: getMyAssetIdentifierFromURL(url): returns the content id in the URL. A packager may write
// `skd:{entitlement_server_url}?cid={content_id}` or `skd:{content_id}` (line 31), or the content id after a semicolon.
// If the URL has no content id (line 33), the function returns the one that the application knows.
static std::string my_asset_identifier(const std::string &url, const std::string &known) {
  for (const std::string mark : {"?cid=", ";", "skd://", "skd:"}) {
    const auto at = url.find(mark);
    if (at != std::string::npos && at + mark.size() < url.size() && url != "skd://")
      return url.substr(at + mark.size());
  }
  return known;
}

// Seed S4, line 67: replaces "skd://", here by "http://", because the server listens on loopback.
static std::string server_in(const std::string &url) {
  const auto start = url.compare(0, 6, "skd://") == 0 ? 6 : 4;
  return "http://" + url.substr(start, url.find('?') - start);
}

int main(int argc, char **argv) {
  if (argc < 7) return 2;
  const int use_case = std::stoi(argv[1]);
  const std::string server = argv[2], url = argv[3], content_id = argv[6];
  spc asked;
  try {
    usher::context context;
    context.add_observer([](const usher::event &event) { std::printf("event %s\n", event.name()); });

    usher::loader_options options;
    // Seed S4, lines 17-21: the application decides to which server the request goes, and how to get the token.
    options.server = [&](usher::server_request request) {
      const std::string strUrl(request.url().text());
      const std::string asset_id = my_asset_identifier(strUrl, content_id);
      if (use_case == 0) { // S4:48  NSString* const EXPRESSPLAY_TOKEN = @"https://..."
        request.answer(server);
      } else if (use_case == 1) { // S4:85  strUrl = getOnPremiseServerUrl(strUrl, assetId)
        request.answer(server, "X-Asset: on-premise");
      } else if (use_case == 2) { // S4:106  strUrl = getExpressPlayTokenUrlFromEntilementServer(strUrl, assetId, ...)
        usher::entitlement wanted;
        wanted.url = server == "-" ? server_in(strUrl) : server;
        wanted.content_id = asset_id;
        // Seed S4, lines 99-103: bEnforceDeviceID. If it is false, the library asks for a token that registers the
        // device; if it is true, for a token that only this device can use.
        wanted.token_kind = request.token_kind();
        request.ask_entitlement(wanted);
      } else {
        // Seed S4, line 109: the page says "strUrl is already the ExpressPlay Token Url". The library replaces the
        // scheme `skd:` of this URL by the option `derived_scheme`. The seed replaces it, too (line 167).
        request.use_builtin();
      }
    };
    // Seed S4, line 120: makes the SPC, as [loadingRequest streamingContentKeyRequestDataForApp:...] does.
    options.spc = [&](usher::spc_request request) {
      const usher::bytes_view certificate = request.certificate();
      const std::string asset_id = my_asset_identifier(std::string(request.url().text()), content_id);
      cdm_make_spc(&asked, certificate.data(), certificate.size(), usher::bytes_view(asset_id).data(), asset_id.size());
      memcpy(asked.bytes + 56, "this tv", 7); // the device
      request.answer({asked.bytes, asked.size});
    };
    options.certificate_file = argv[4]; // S4:114-117
    options.content_id_rule = usher::content_id_rule::host;
    options.allowed_hosts = "127.0.0.1:*";
    options.derived_scheme = "http";
    if (use_case == 2) {
      options.device_binding = true;
      options.customer_cookie = "household-1";
      options.device_registered = argc > 7;
    }
    if (use_case == 3) options.route = usher::route::token_url;
    // S4:174  [[PTDefaultMediaPlayerClientFactory defaultFactory] registerPTAVAssetResourceLoader:resourceLoader]
    const auto loader = context.add_loader(std::move(options));
    const auto player = context.new_player();
    const auto playback = player.play({});
    const auto ckc = playback.get_resource(url);
    cdm_play(argv[5], &asked, ckc.data().data(), ckc.data().size()); // S4:136  finishLoadingWithResponse:
    context.close();
  } catch (const usher::error &error) { // S4:141  finishLoadingWithError:
    std::printf("error %s: %s\n", usher::status_name(error.status()), error.what());
    return 1;
  }
}
