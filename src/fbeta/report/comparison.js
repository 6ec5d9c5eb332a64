// Sorts the table, hides and shows methods, moves the cut. The numbers come from Python; nothing is estimated here.
(() => {
  const data = JSON.parse($("data").textContent);

  // As Python writes a number: a tie goes to the even digit, where toFixed would round it away from zero.
  function fixed(x, digits) {
    if (!Number.isFinite(x)) return "–";
    let text = Math.abs(x).toFixed(digits);
    const [whole, rest] = Math.abs(x).toFixed(digits + 60).split(".");
    if (/^50*$/.test(rest.slice(digits))) {
      const down = digits ? `${whole}.${rest.slice(0, digits)}` : whole;
      if (Number(down.at(-1)) % 2 === 0) text = down;
    }
    const [before, after] = text.split(".");
    const grouped = before.replace(/\B(?=(\d{3})+$)/g, ",") + (after === undefined ? "" : "." + after);
    return (x < 0 && /[1-9]/.test(text) ? "−" : "") + grouped;
  }
  const count = (x) => fixed(x, Number.isInteger(x) ? 0 : 1);
  const money = (x) => fixed(x, Number.isInteger(x) ? 0 : 2);
  const share = (part, whole) => (whole > 0 ? part / whole : 0);

  // Sorting: numbers by size, words by the alphabet, what is missing always last.
  function sortBy(head) {
    const heads = all("#methods thead th"), column = heads.indexOf(head), body = all("#methods tbody")[0];
    const now = head.getAttribute("aria-sort"), other = { ascending: "descending", descending: "ascending" };
    const order = now ? other[now] : head.dataset.first, sign = order === "ascending" ? 1 : -1;
    const value = (row) => row.children[column].dataset.v;
    const number = (v) => ({ inf: Infinity, "-inf": -Infinity })[v] ?? (v === "" ? NaN : Number(v));
    const isText = all("tr", body).some((row) => value(row) !== "nan" && Number.isNaN(number(value(row))));
    const missing = (v) => v === "" || v === "nan";
    all("tr", body).sort((a, b) => {
      const [x, y] = [value(a), value(b)];
      if (missing(x) || missing(y)) return missing(x) - missing(y);
      return sign * (isText ? x.localeCompare(y) : number(x) - number(y) || 0);
    }).forEach((row) => body.append(row));
    heads.forEach((h) => h.removeAttribute("aria-sort"));
    head.setAttribute("aria-sort", order);
  }
  all("#methods thead th").forEach((head) => head.firstElementChild.addEventListener("click", () => sortBy(head)));

  // Which methods the pictures show.
  function show(box) {
    all(`[data-m="${box.dataset.show}"]`).forEach((part) => part.classList.toggle("off", !box.checked));
  }
  all("[data-show]").forEach((box) => { show(box); box.addEventListener("change", () => show(box)); });
  all("[data-every]").forEach((button) => button.addEventListener("click", () => {
    all("[data-show]").forEach((box) => { box.checked = Boolean(button.dataset.every); show(box); });
  }));
  if ($("every")) $("every").hidden = false;

  // The cut.
  const slider = $("cut");
  if (!slider) return;
  const select = $("method"), prices = [$("fp-cost"), $("fn-cost")];
  const put = (name, text) => { all(`[data-n="${name}"]`)[0].textContent = text; };
  // NaN for what is no cost.
  const price = (input) => (input.value !== "" && Number(input.value) >= 0 ? Number(input.value) : NaN);
  let method, scored; // `scored`: the decisions that were scored, until the slider moves.

  const cost = (i) => price(prices[0]) * method.fp[i] + price(prices[1]) * (method.positives - method.tp[i]);

  function place(kind, x, y) {
    all(`svg[data-live="${kind}"]`).forEach((svg) => {
      const [x0, x1, y0, y1] = svg.dataset.window.split(" ").map(Number);
      const [left, top, width, height] = svg.dataset.box.split(" ").map(Number);
      const mark = svg.querySelector(".live"), inside = x >= x0 && x <= x1 && Number.isFinite(y);
      if (!inside) return mark.setAttribute("hidden", "");
      mark.removeAttribute("hidden");
      const across = left + (width * (x - x0)) / (x1 - x0), down = top + (height * (y1 - y)) / (y1 - y0);
      mark.setAttribute("transform", `translate(${across.toFixed(2)} ${down.toFixed(2)})`);
    });
  }

  function move() {
    const i = Number(slider.value), own = scored && method.scored.tp !== undefined;
    const { tp, fp, score: found } = own ? method.scored : { tp: method.tp[i], fp: method.fp[i], score: method.score[i] };
    const fn = method.positives - tp, tn = method.negatives - fp, rows = method.positives + method.negatives;
    const score = fixed(found ?? NaN, data.digits), precision = tp + fp > 0 ? tp / (tp + fp) : NaN;
    put("tp", count(tp)); put("fp", count(fp)); put("fn", count(fn)); put("tn", count(tn));
    put("score", score);
    put("precision", fixed(precision, 3));
    put("recall", fixed(share(tp, method.positives), 3));
    put("alerts", fixed(100 * share(tp + fp, rows), 2) + " %");
    const total = price(prices[0]) * fp + price(prices[1]) * fn;
    put("cost", money(total));
    put("cost-row", fixed(total / rows, 4));
    prices.forEach((input) => input.setAttribute("aria-invalid", String(Number.isNaN(price(input)))));
    $("cost-note").hidden = Number.isFinite(total);
    all('[data-jump="cheap"]')[0].disabled = !Number.isFinite(total);
    const cut = method.cut[i];
    $("at").textContent = own ? `each split’s own cut (${method.scored.cut})` : cut === "none" ? "no score" : cut === "all" ? "any score" : "score " + cut;
    slider.setAttribute("aria-valuetext", `${$("at").textContent}: ${all(".tiles dt")[0].textContent} ${score}`);
    place("roc", share(fp, method.negatives), share(tp, method.positives));
    place("pr", share(tp, method.positives), precision);
  }

  // The score along the slider, so that one sees where it is high and how flat.
  function profile() {
    const s = method.score.map((v) => v ?? NaN), kept = s.filter(Number.isFinite);
    const low = Math.min(...kept), span = Math.max(...kept) - low || 1, last = Math.max(1, s.length - 1);
    const steps = s.map((v, i) => `${((600 * i) / last).toFixed(1)} ${(46 - (44 * ((v || low) - low)) / span).toFixed(1)}`);
    all("#profile path")[0].setAttribute("d", `M0 48L${steps.join("L")}L600 48z`);
  }

  function choose(at) {
    method = data.methods[select.value];
    slider.max = method.tp.length - 1;
    slider.value = at ?? method.own;
    scored = at === undefined;
    profile();
    move();
  }

  const jumps = {
    own: () => method.own,
    half: () => method.half,
    cheap: () => method.tp.reduce((best, _, i) => (cost(i) < cost(best) ? i : best), 0),
  };
  all("[data-jump]").forEach((button) => button.addEventListener("click", () => {
    slider.value = jumps[button.dataset.jump]();
    scored = button.dataset.jump === "own";
    move();
  }));
  slider.addEventListener("input", () => { scored = false; move(); });
  select.addEventListener("change", () => choose());
  prices.forEach((input) => input.addEventListener("input", move));
  $("steer").hidden = $("numbers").hidden = false;
  choose();
})();
