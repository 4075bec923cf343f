/** Dialogs: one asks for a token, one asks before something changes. */

import { h, patch } from "./dom.js";

function open(label, content) {
  const dialog = document.createElement("dialog");
  dialog.setAttribute("aria-label", label);
  patch(dialog, content(dialog));
  document.body.append(dialog);
  dialog.showModal();
  return new Promise((done) => {
    dialog.addEventListener("close", () => {
      dialog.remove();
      done(dialog.returnValue);
    });
  });
}

/** Asks for a token until one is given. `problem` is why the last one was refused, or null. Returns the token. */
export async function askForToken(problem) {
  for (;;) {
    let token = "";
    await open("Token", (dialog) =>
      h(
        "form",
        {
          method: "dialog",
          autocomplete: "off",
          on: { submit: () => (token = dialog.querySelector("input").value.trim()) },
        },
        h("h2", null, "This controller asks for a token"),
        problem && h("p", { class: "bad-news", role: "alert" }, `It was refused: ${problem}`),
        h("label", { for: "token" }, "Token"),
        h("input", {
          id: "token",
          type: "password",
          autocomplete: "off",
          spellcheck: "false",
          required: true,
          autofocus: true,
        }),
        h(
          "p",
          { class: "muted" },
          "It is kept in this page alone, and is gone when the page is closed or loaded again.",
        ),
        h("div", { class: "actions" }, h("button", { class: "main", type: "submit" }, "Continue")),
      ),
    );
    if (token !== "") return token;
  }
}

/** Asks whether to go on. `content` says what would change. Returns whether the answer was yes. */
export async function confirm(title, content, yes) {
  const answer = await open(title, () =>
    h(
      "form",
      { method: "dialog" },
      h("h2", null, title),
      content,
      h(
        "div",
        { class: "actions" },
        h("button", { value: "no", autofocus: true }, "Cancel"),
        h("button", { class: "main", value: "yes" }, yes),
      ),
    ),
  );
  return answer === "yes";
}
